import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

@Suite("When authorities are loaded, and what errors say of those that cannot be") struct AuthoritiesTests {
  /// The address sanitizer also finds whether the certificates before the damaged one are freed.
  @Test(
    "the error for authorities that OpenSSL cannot read names the file and the setting",
    arguments: [false, true])
  func damaged(isAfterOthers: Bool) async throws {
    let others =
      isAfterOthers
      ? try await Data(contentsOf: URL(fileURLWithPath: TestCertificates.authorityFile())) : Data()
    let certificate = try await TestCertificates.certificate(for: ["api.test"])
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(.loopback, .certificate(certificate))])
    defer { origin.stop() }
    let bench = try await TransportBench {
      $0.tls.authorities =
        others + Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
      $0.tls.authoritiesName = "/some/file.pem"
    }
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in _ = try await bench.execute(request, [.loopback]) }
    await bench.end()
    #expect(error?.code == .noAuthorities && error?.phase == .tls && error?.isRetryable == false)
    #expect(error?.message.contains("/some/file.pem (tls.caFile, --cacert) has a certificate") == true)
    #expect(error?.message.contains("ca-certificates") == false)
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

  /// The system's authorities come through a pipe, so that the test decides when they are loaded.
  @Test("requests without TLS do not wait while the authorities are loaded")
  func loading() async throws {
    let certificate = try await TestCertificates.certificate(for: ["api.test"])
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(.loopback, .certificate(certificate))])
    defer { origin.stop() }
    let plain = try LoopbackServer(
      .raw { try $0.respond(200, text: "plain") })
    let pipe = try TemporaryDirectory.make("authorities") + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let writer = open(pipe, O_RDWR | O_CLOEXEC)
    let bench = try await TransportBench {
      $0.tls.authorities = nil
      $0.tls.systemFile = pipe
    }
    let secure = Task {
      try await bench.execute(try NetOptRequest(.get, "https://api.test:\(origin.port)/"), [.loopback])
    }
    let request = try NetOptRequest(.get, "http://plain.test:\(plain.endpoint.port)/")
    let answer = try await bench.execute(request, [plain.endpoint.address])
    #expect(try await answer.body.collect(upTo: 10) == Array("plain".utf8))
    let file = try await TestCertificates.authorityFile()
    let authorities = try Array(Data(contentsOf: URL(fileURLWithPath: file)))
    #expect(write(writer, authorities, authorities.count) == authorities.count)
    close(writer)
    #expect(try await secure.value.status == 200)
    await bench.end()
    plain.stop()
  }

  /// Otherwise the first of several probes would dial last: it would be submitted to the loop again.
  @Test("few authorities are loaded in the turn of the request, and many on a thread")
  func turn() async throws {
    let few = try AuthorityFile.read(try await TestCertificates.authorityFile())
    let many = Array(repeatElement(few, count: (16 << 10) / few.count + 1).joined())
    for (authorities, isReadyAtOnce) in [(few, true), (many, false)] {
      let loop = try EventLoop()
      var configuration = CurlConfiguration()
      configuration.tls.authorities = authorities
      let tls = try ClientTLS(configuration, loop: loop)
      let wasReadyAtOnce = try await withCheckedThrowingContinuation { answer in
        let work = ClosureWork {
          if tls.makeReady() { return answer.resume(returning: true) }
          tls.whenReady { answer.resume(returning: false) }
        }
        if !loop.submit(work) { answer.resume(throwing: TestSupportError("the loop has stopped")) }
      }
      #expect(wasReadyAtOnce == isReadyAtOnce)
      #expect(try await loop.perform { tls.isSettled && tls.makeReady() })
      loop.stop()
    }
  }
}
