export * as jsSdk from '@elasticpath/js-sdk';
export * as mappingSdk from '@epcc-sdk/sdks-merchant-realm-mapping';
export * as shopperSdk from '@epcc-sdk/sdks-shopper';
