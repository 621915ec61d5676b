import COpenSSL
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
        others + damagedAuthorities
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
    // A pipe forgets what nobody has read when its last end closes, and the client may not have opened it yet.
    try await wait(for: "the client to read the authorities") {
      var entry = pollfd(fd: writer, events: Int16(POLLIN), revents: 0)
      return poll(&entry, 1, 0) == 0
    }
    close(writer)
    #expect(try await secure.value.status == 200)
    await bench.end()
    plain.stop()
  }

  /// Otherwise the first of several probes would dial last: it would be submitted to the loop again.
  @Test(
    "few authorities are ready in the turn of the request, and many are parsed on a thread before it dials")
  func turn() async throws {
    let few = try AuthorityFile.read(try await TestCertificates.authorityFile())
    let many = Array(repeatElement(few, count: (16 << 10) / few.count + 1).joined())
    for (authorities, areFew) in [(few, true), (many, false)] {
      let scene = try Scene(authorities)
      let wasReadyAtOnce = try await withCheckedThrowingContinuation { answer in
        let work = ClosureWork {
          if scene.tls.makeReady() { return answer.resume(returning: true) }
          scene.tls.whenReady { answer.resume(returning: false) }
        }
        if !scene.loop.submit(work) { answer.resume(throwing: TestSupportError("the loop has stopped")) }
      }
      #expect(wasReadyAtOnce == areFew)
      #expect(try await scene.loop.perform { scene.tls.isSettled && scene.tls.makeReady() })
      #expect(try await scene.isParsed() == !areFew)
      scene.loop.stop()
    }
  }

  /// The server then prepares its first message at the same time.
  @Test("few authorities are parsed in the turn after that in which a connection began TLS")
  func nextTurn() async throws {
    let scene = try Scene(try AuthorityFile.read(try await TestCertificates.authorityFile()))
    try await scene.loop.perform {
      #expect(scene.tls.makeReady())
      #expect(scene.tls.apply(scene.host, to: scene.context) === scene.host)
      #expect(scene.host.trust?.store?.isParsed == false)
    }
    #expect(try await scene.isParsed())
    #expect(try await scene.loop.perform { scene.host.failure == nil })
    scene.loop.stop()
  }

  /// The loop may be busy with other connections when the certificate comes.
  @Test("authorities that are not parsed yet are parsed when the server's certificate comes")
  func certificateComesEarly() async throws {
    let scene = try Scene(damagedAuthorities)
    try await scene.loop.perform {
      #expect(scene.tls.makeReady())
      let certificate = PeerCertificate.attach(to: scene.context, verifiedBy: scene.host)
      // A message of the kind `certificate` (RFC 8446, section 4.4.2), with an empty list.
      let message: [UInt8] = [UInt8(netopt_message_certificate), 0, 0, 4, 0, 0, 0, 0]
      func receive(isSent: Int32, kind: Int32) {
        OpenSSL.checkCertificates(isSent, netopt_tls_1_3, kind, message, message.count, scene.connection)
      }
      receive(isSent: 1, kind: netopt_record_handshake)
      receive(isSent: 0, kind: netopt_record_header)
      #expect(scene.host.trust?.store?.isParsed == false)
      receive(isSent: 0, kind: netopt_record_handshake)
      #expect(scene.host.trust?.store?.isParsed == true)
      #expect(certificate?.authoritiesFailure?.kind == .authorities)
      #expect(scene.host.failure?.kind == .authorities)
    }
    scene.loop.stop()
  }

  /// The TLS settings of a client, and a context and a connection as libcurl makes them (SSL_CTX_new(3),
  /// SSL_new(3)).
  private final class Scene: @unchecked Sendable {
    // Unchecked: the test uses the settings, the context and the connection only on the loop.
    let loop: EventLoop
    let tls: ClientTLS
    let context, connection: OpaquePointer
    /// The settings of the connection.
    var host: HostTLS { tls.tls(for: "api.test") }

    init(_ authorities: [UInt8]) throws {
      var configuration = CurlConfiguration()
      configuration.tls.authorities = authorities
      loop = try EventLoop()
      tls = try ClientTLS(configuration, loop: loop)
      let method: @convention(c) () -> OpaquePointer? = try OpenSSL.function("TLS_client_method")
      let new: @convention(c) (OpaquePointer?) -> OpaquePointer? = try OpenSSL.function("SSL_CTX_new")
      let context = try #require(new(method()))
      self.context = context
      let connect: @convention(c) (OpaquePointer) -> OpaquePointer? = try OpenSSL.function("SSL_new")
      connection = try #require(connect(context))
    }

    deinit {
      for (object, name) in [(connection, "SSL_free"), (context, "SSL_CTX_free")] {
        let free: (@convention(c) (OpaquePointer) -> Void)? = try? OpenSSL.function(name)
        free?(object)
      }
    }

    func isParsed() async throws -> Bool {
      try await loop.perform { self.host.trust?.store?.isParsed == true }
    }
  }

  private let damagedAuthorities = Array(
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
}
