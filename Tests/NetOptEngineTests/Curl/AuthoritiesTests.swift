import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

@Suite("Authorities that cannot be read are named, by who named them") struct AuthoritiesTests {
  /// Sends a request to a server with a valid certificate, and returns the error.
  ///
  /// - Parameter file: the value of `CurlConfiguration.caFile`.
  private func error(_ file: String) async throws -> NetOptError {
    let certificate = try await TestCertificates.certificate(for: ["api.test"])
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(.loopback, .certificate(certificate))])
    defer { origin.stop() }
    let bench = try await TransportBench { $0.caFile = file }
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in _ = try await bench.execute(request, [.loopback]) }
    await bench.end()
    return try #require(error)
  }

  @Test("the error for a missing CA file names the file, the setting and the cause")
  func missing() async throws {
    let error = try await error("/nonexistent/authorities.pem")
    #expect(error.code == .noAuthorities && error.phase == .tls && !error.isRetryable)
    #expect(
      error.message.contains(
        "/nonexistent/authorities.pem, which tls.caFile (--cacert) names, cannot be read"))
    #expect(error.message.contains("No such file or directory"))
    #expect(!error.message.contains("ca-certificates"))
  }

  @Test("the error for a CA file without a certificate says so")
  func empty() async throws {
    let file = try TemporaryDirectory.make("authorities") + "/authorities.pem"
    try TextFile.write("nothing\n", to: file)
    let error = try await error(file)
    #expect(error.code == .noAuthorities)
    #expect(error.message.contains("has no certificate in PEM form"))
  }

  @Test("the error for missing system authorities names the file and the package to install")
  func system() {
    let failure = Authorities.system("/nonexistent/ca-certificates.crt").failure
    #expect(failure.kind == .authorities)
    #expect(failure.message.contains("this machine has no trusted authorities"))
    #expect(
      failure.message.contains("/nonexistent/ca-certificates.crt cannot be read (No such file or directory)"))
    #expect(failure.message.contains("install the package ca-certificates"))
    #expect(Authorities.system(nil).failure.message.contains("built without a file"))
  }
}
