import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A request whose pooled connection is lost. libcurl replaces the connection with another pooled connection,
/// which the gate refuses. No new connection can be opened, because the server has stopped listening.
@Suite struct LostReplacementTests {
  /// A server that speaks HTTP/1.1 on two connections. Its arguments are the address and the port.
  ///
  /// The first connection carries the first and the third request. The second connection carries the second
  /// request, while the first request waits. The response on the second connection has both chunks and a
  /// Content-Length, so that netopt does not use this connection again. When the third request has come, the
  /// server stops listening and ends the first connection without a response. It then prints the bytes that
  /// arrive on the second connection after the second request.
  private static let server = """
    import socket, sys
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
    print('ready', flush=True)
    def head(connection):
        data = b''
        while not data.endswith(b'\\r\\n\\r\\n'):
            part = connection.recv(4096)
            if not part: raise EOFError
            data += part
        return data
    first = listener.accept()[0]
    head(first)
    print('first', flush=True)
    second = listener.accept()[0]
    head(second)
    chunks = b'Content-Length: 2\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n2\\r\\nok\\r\\n0\\r\\n\\r\\n'
    second.sendall(b'HTTP/1.1 200 OK\\r\\n' + chunks)
    first.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
    head(first)
    listener.close()
    first.close()
    print(repr(second.recv(4096)), flush=True)
    """

  @Test(
    "a request is reported as lost, and may be retried elsewhere, when no other connection can be opened",
    arguments: [NetOptRequest.Method.get, .post])
  func lostReplacement(method: NetOptRequest.Method) async throws {
    let address = IPAddress.freshLoopback(1)[0]
    let port = try FreePort.find(on: [address])
    let server = try ChildProcess(
      "/usr/bin/python3", ["-c", Self.server, "\(address)", "\(port)"],
      in: try TemporaryDirectory.make("replacement"))
    defer { server.stop() }
    let bench = try await TransportBench()
    func send(_ method: NetOptRequest.Method) async throws(NetOptError) {
      let request = try NetOptRequest(method, "http://api.test:\(port)/")
      _ = try await bench.execute(request, [address]).body.collect(upTo: 10)
    }
    try await server.wait { TextFile.read(server.output) == "ready\n" }
    async let first: Void = send(.get)
    try await wait(for: "the first request") { TextFile.read(server.output) == "ready\nfirst\n" }
    try await send(.get)
    try await first
    let error = try #require(await failure { () throws(NetOptError) in try await send(method) })
    #expect(error.code == .sendFailed && error.isRetryable == (method == .get))
    let winner = try #require(error.route?.winner)
    if method == .get {
      #expect(error.message.contains("netopt could not open another one"), "\(error)")
      #expect(winner.failure?.kind == .refused)
    }
    // The server received no byte of the third request on the connection that the gate refused.
    try await wait(for: "the end of the second connection") {
      TextFile.read(server.output).hasSuffix("b''\n")
    }
    await bench.end()
  }
}
