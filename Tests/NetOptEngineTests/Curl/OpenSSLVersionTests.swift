import NetOptCore
import Testing

@testable import NetOptEngine

/// The check that the OpenSSL of libcurl has the same major version as the headers that netopt was compiled
/// with (`COpenSSL`). netopt uses no function of another OpenSSL.
@Suite struct OpenSSLVersionTests {
  @Test("the loaded OpenSSL has the major version of the headers, and there is no warning")
  func loaded() {
    #expect(OpenSSL.isOfHeaders(CurlLibrary.tlsName))
    #expect(OpenSSL.loaded != nil)
    #expect(CurlLibrary.warnings.isEmpty)
  }

  @Test(
    "another TLS library or major version does not match the headers, and gets a warning",
    arguments: [
      "OpenSSL/1.1.1w", "OpenSSL/4.0.0", "OpenSSL/30.0.1", "OpenSSL/3", "(OpenSSL/3.0.15)", "GnuTLS/3.7.9",
      "BoringSSL", "LibreSSL/3.8.2", "quictls/3.0.15", "mbedTLS/3.4.0", "",
    ])
  func others(name: String) {
    #expect(!OpenSSL.isOfHeaders(name))
    let warning = OpenSSL.warning(of: name)
    #expect(warning.message.contains(name.isEmpty ? "no TLS library" : name))
    #expect(warning.message.contains("OpenSSL 3"))
  }

  @Test(
    "every 3.x release of OpenSSL matches the headers",
    arguments: ["OpenSSL/3.0.15", "OpenSSL/3.5.4", "OpenSSL/3.0.19-dev"])
  func sameMajor(name: String) { #expect(OpenSSL.isOfHeaders(name)) }
}
