/** The parts of upng-js (MIT) that pictures are written with. */
declare module 'upng-js' {
  interface Image {
    readonly width: number;
    readonly height: number;
  }
  function decode(bytes: Uint8Array): Image;
  /** The first frame as bytes of red, green, blue and opacity. */
  function toRGBA8(image: Image): ArrayBuffer[];
  /** With at most so many colours; 0 keeps all. */
  function encode(frames: ArrayBuffer[], width: number, height: number, colours: number): ArrayBuffer;
  const UPNG: {
    readonly decode: typeof decode;
    readonly toRGBA8: typeof toRGBA8;
    readonly encode: typeof encode;
  };
  // The package has no other export.
  export = UPNG;
}
