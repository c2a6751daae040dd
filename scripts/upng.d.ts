/** The functions of upng-js (MIT) that make_screenshots.ts uses. */
declare module 'upng-js' {
  interface Image {
    readonly width: number;
    readonly height: number;
  }
  function decode(bytes: Uint8Array): Image;
  /** The frames as RGBA bytes. */
  function toRGBA8(image: Image): ArrayBuffer[];
  /** `colours` is the size of the palette; 0 keeps all colours. */
  function encode(frames: ArrayBuffer[], width: number, height: number, colours: number): ArrayBuffer;
  const UPNG: {
    readonly decode: typeof decode;
    readonly toRGBA8: typeof toRGBA8;
    readonly encode: typeof encode;
  };
  // The package has no other export.
  export = UPNG;
}
