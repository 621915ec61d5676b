import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// HTTP/2 connections that were opened ahead of requests, and on which the server has not sent a frame yet.
@Suite struct NewConnectionTests {
  /// An HTTP/2 server that sends no frame before the first request, not even SETTINGS. For each connection,
  /// it prints the line "tickets" after it has sent the TLS session tickets that follow the handshake. Its
  /// arguments are the files of the certificate and of the key, the address and the port.
  private static let server = """
    import socket, ssl, struct, sys, threading
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    context.set_alpn_protocols(['h2'])
    def frame(kind, flags, stream, payload=b''):
        return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload
    def exactly(connection, count):
        data = b''
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part: raise EOFError
            data += part
        return data
    def serve(raw):
        connection = context.wrap_socket(raw, server_side=True)
        print('tickets', flush=True)
        exactly(connection, 24)
        settings = frame(4, 0, 0) + frame(4, 1, 0)
        while True:
            head = exactly(connection, 9)
            exactly(connection, int.from_bytes(head[:3], 'big'))
            if head[3] == 1:
                # Ends the headers and the stream; the one field is ":status: 200".
                connection.sendall(settings + frame(1, 5, struct.unpack('>I', head[5:])[0], b'\\x88'))
                settings = b''
    def end(raw):
        try: serve(raw)
        except (EOFError, OSError): raw.close()
    listener = socket.create_server((sys.argv[3], int(sys.argv[4])))
    while True:
        threading.Thread(target=end, args=(listener.accept()[0],), daemon=True).start()
    """

  /// A running `server`.
  private struct Server {
    let process: ChildProcess
    let address: IPAddress
    let port: UInt16

    init() async throws {
      address = IPAddress.freshLoopback(1)[0]
      port = try FreePort.find(on: [address])
      let certificate = try await TestCertificates.certificate(for: ["api.test"])
      process = try ChildProcess(
        "/usr/bin/python3",
        [
          "-c", NewConnectionTests.server, certificate.certificateFile, certificate.keyFile, "\(address)",
          "\(port)",
        ], in: try TemporaryDirectory.make("quiet-server"))
    }

    /// Returns the number of connections that have completed the handshake.
    func handshakes() throws -> Int {
      let bytes = try FileBytes.read(process.output, upTo: 10_000, as: "the server's output", in: .connect)
      let text = String(decoding: bytes, as: UTF8.self)
      guard !text.contains("Error") else { throw TestSupportError(text) }
      return text.split(separator: "\n").count
    }
  }

  /// Opens a connection without a request, and waits until the server has sent its session tickets on it.
  ///
  /// - Returns: a request that can use the connection.
  private func warmUp(_ bench: TransportBench, _ server: Server) async throws -> NetOptRequest {
    let request = try NetOptRequest(.get, "https://api.test:\(server.port)/")
    let now = bench.loop.now()
    try await wait(for: "a connection") {
      let context = CallContext(id: 1, started: now, deadline: now + .seconds(60))
      let plan = bench.plan(request.url, [server.address])
      return (try? await bench.transport.warmUp(request, along: plan, in: context)) != nil
    }
    try await wait(for: "the session tickets") { try server.handshakes() == 1 }
    return request
  }

  /// Before libcurl 7.88 uses a pooled connection, it checks whether the connection is alive. On this one it
  /// would read the session tickets, find no data after them, and take the connection for dead. netopt hides
  /// the tickets from this check (`NewConnections`).
  @Test("a request uses a warm connection before the server has sent an HTTP/2 frame")
  func warmConnection() async throws {
    let server = try await Server()
    let bench = try await TransportBench()
    let request = try await warmUp(bench, server)
    for _ in 0..<3 {
      let response = try await bench.execute(request, [server.address])
      #expect(response.status == 200 && response.version == .http2 && response.reused)
      _ = try await response.body.collect(upTo: 100)
    }
    #expect(try server.handshakes() == 1)
    await bench.end()
    server.process.stop()
  }
}
