/// The fields of requests that carry credentials.
package enum CredentialFields {
  /// Those that are common: of HTTP, of cookies, and the ones in which services take keys and tokens.
  package static let usual: Set<String> = [
    "Authorization", "Cookie", "Proxy-Authorization", "DPoP",
    "Api-Key", "ApiKey", "X-Api-Key", "X-ApiKey", "X-Api-Token", "X-Api-Secret", "X-Auth-Key", "X-Auth-Token",
    "X-Auth-User",
    "X-Authorization", "X-Access-Token", "X-User-Token", "X-Session-Id", "X-Session-Token", "X-Token",
    "X-JWT-Assertion",
    "Auth-Token", "Access-Token", "Private-Token", "Job-Token", "Ocp-Apim-Subscription-Key",
    "X-Amz-Security-Token",
    "X-Functions-Key", "X-Goog-Api-Key", "X-Goog-Iap-Jwt-Assertion", "X-RapidAPI-Key",
    "X-Shopify-Access-Token", "X-Vault-Token",
    "X-Netopt-Key", "X-Netopt-Sealed",
  ]
}
