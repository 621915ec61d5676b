import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct LoopbackConformanceBenchTests {
  /// Starts a bench, runs `body`, and stops the bench. The tests send requests to the servers of the bench
  /// with curl(1). So the bench has a stub transport, which no test uses.
  private func withBench(
    _ body: (LoopbackConformanceBench, LoopbackConformanceBench.Setting) async throws -> Void
  ) async throws {
    var setting: LoopbackConformanceBench.Setting?
    let bench = try await LoopbackConformanceBench {
      setting = $0
      return StubTransport(resolver: $0.resolver)
    }
    do { try await body(bench, try #require(setting)) } catch {
      await bench.stop()
      throw error
    }
    await bench.stop()
  }

  /// Requests a resource at the address with a behaviour.
  ///
  /// - Parameter arguments: further arguments of curl.
  private func curl(
    _ bench: LoopbackConformanceBench, _ behaviour: ConformanceBehaviour,
    _ resource: ConformanceResource = .small,
    _ arguments: [String] = []
  ) async throws -> Curl {
    let origin = bench.origin
    return try await Curl.run(
      ["--connect-to", "\(origin.host):\(origin.port):\(bench.address(behaviour)):\(origin.port)"]
        + ["--cacert", TestCertificates.authorityFile()] + arguments
        + ["\(origin)\(bench.path(resource))?\(resource.rawValue)"])
  }

  // The statuses are exit codes of curl(1). 7: could not connect. 18: the body was cut off. 28: timed out.
  // 52: no response. 60: the certificate could not be verified. 92: an error of an HTTP/2 stream.

  @Test("each address of the bench behaves as named, and the bench records its requests")
  func addressBehaviours() async throws {
    try await withBench { bench, setting in
      #expect(try await curl(bench, .working).output == "hello\n")
      #expect(try await curl(bench, .alsoWorking).output == "hello\n")
      #expect(try await curl(bench, .refusing).status == 7)
      #expect(try await curl(bench, .impostor).status == 60)
      #expect(try await curl(bench, .impostor, .small, ["-k"]).output == "hello\n")
      #expect(try await curl(bench, .silent, .small, ["-m", "0.2"]).status == 28)
      try await bench.waitForAttempt()
      #expect(
        try await setting.resolver.resolve(bench.origin.host, fresh: false).addresses
          == [bench.address(.working), bench.address(.refusing)])
      let received = try await bench.received("small", expected: 3)
      #expect(received == [.working, .alsoWorking, .impostor].map(bench.address))
    }
  }

  @Test("each resource of the bench behaves as named", arguments: ["--http1.1", "--http2"])
  func resourceBehaviours(_ version: String) async throws {
    try await withBench { bench, _ in
      let isHTTP2 = version == "--http2"
      #expect(try await curl(bench, .working, .pattern, [version, "-I"]).output.contains("2000000"))
      #expect(try await curl(bench, .working, .upload, [version, "-d", "12345"]).output == "5\n")
      #expect(try await curl(bench, .working, .dropped, [version]).status == (isHTTP2 ? 92 : 52))
      #expect(
        try await curl(bench, .working, .cut, [version, "-o", "/dev/null"]).status == (isHTTP2 ? 92 : 18))
      #expect(try await curl(bench, .working, .stalled, [version, "-m", "0.3"]).output.contains("xxx"))
      #expect(try await curl(bench, .working, .noAnswer, [version, "-m", "0.3"]).status == 28)
      try await bench.waitForRequest("noAnswer")
      #expect(try await bench.received("dropped", expected: 1) == [bench.address(.working)])
    }
  }
}
