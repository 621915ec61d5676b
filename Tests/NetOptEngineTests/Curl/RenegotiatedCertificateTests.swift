import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// The check of the certificates that a server sends in a renegotiation (TLS 1.2). The first handshake of the
/// connection was valid.
@Suite struct RenegotiatedCertificateTests {
  /// A server that never responds. When a request arrives, it begins a renegotiation with other certificates.
  ///
  /// Its arguments are the file of the first certificates, the file of their key, the file of the other
  /// certificates, the protocol that it chooses by ALPN, the address and the port.
  private static let server = """
    import ctypes, ctypes.util, socket, sys
    lib = ctypes.CDLL(ctypes.util.find_library('ssl'))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name, result, *arguments in [
        ('TLS_server_method', pointer), ('SSL_CTX_new', pointer, pointer), ('SSL_new', pointer, pointer),
        ('SSL_CTX_ctrl', ctypes.c_long, pointer, number, ctypes.c_long, pointer),
        ('SSL_CTX_set_options', ctypes.c_uint64, pointer, ctypes.c_uint64),
        ('SSL_CTX_use_certificate_chain_file', number, pointer, ctypes.c_char_p),
        ('SSL_CTX_use_PrivateKey_file', number, pointer, ctypes.c_char_p, number),
        ('SSL_use_certificate_chain_file', number, pointer, ctypes.c_char_p),
        ('SSL_CTX_set_alpn_select_cb', None, pointer, pointer, pointer), ('SSL_set_fd', number, pointer, number),
        ('SSL_accept', number, pointer), ('SSL_renegotiate', number, pointer), ('SSL_do_handshake', number, pointer),
        ('SSL_read', number, pointer, pointer, number)]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    good, key, other, protocol, address, port = sys.argv[1:]
    name = ctypes.create_string_buffer(protocol.encode())
    def choose(ssl, out, length, offered, count, data):
        out[0], length[0] = ctypes.addressof(name), len(protocol)
        return 0
    select = ctypes.CFUNCTYPE(
        number, pointer, ctypes.POINTER(pointer), ctypes.POINTER(ctypes.c_ubyte), pointer, ctypes.c_uint, pointer)(choose)
    context = lib.SSL_CTX_new(lib.TLS_server_method())
    # SSL_CTRL_SET_MAX_PROTO_VERSION, and SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION, without which no certificates come again.
    lib.SSL_CTX_ctrl(context, 124, 0x0303, None)
    lib.SSL_CTX_set_options(context, 1 << 16)
    lib.SSL_CTX_use_certificate_chain_file(context, good.encode())
    lib.SSL_CTX_use_PrivateKey_file(context, key.encode(), 1)
    lib.SSL_CTX_set_alpn_select_cb(context, select, None)
    listener = socket.create_server((address, int(port)))
    print('ready', flush=True)
    while True:
        connection, _ = listener.accept()
        ssl = lib.SSL_new(context)
        lib.SSL_set_fd(ssl, connection.fileno())
        buffer = ctypes.create_string_buffer(65536)
        if lib.SSL_accept(ssl) == 1 and lib.SSL_read(ssl, buffer, 65536) > 0:
            lib.SSL_use_certificate_chain_file(ssl, other.encode())
            lib.SSL_renegotiate(ssl)
            lib.SSL_do_handshake(ssl)
            # Passes over what the client has sent before it saw the request for a renegotiation.
            while lib.SSL_read(ssl, buffer, 65536) > 0: pass
        connection.close()
    """

  @Test(
    "a renegotiation fails if a certificate gives its curve by parameters", arguments: ["http/1.1", "h2"])
  func renegotiation(_ version: String) async throws {
    let good = try await TestCertificates.certificate(for: ["api.test"])
    let other = try good.followed(by: [try await JunkCertificate.ofDescribedCurve("prime256v1")])
    let address = IPAddress.freshLoopback(1)[0]
    let port = try FreePort.find(on: [address])
    let server = try ChildProcess(
      "/usr/bin/python3",
      ["-c", Self.server, good.certificateFile, good.keyFile, other.certificateFile, version, "\(address)"]
        + ["\(port)"], in: try TemporaryDirectory.make("renegotiation"))
    defer { server.stop() }
    try await server.wait(untilReady: { TextFile.read(server.output).contains("ready") })
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(port)/")
    request.options.timeout = .seconds(10)
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, [address])
    }
    let words = "one of its certificates has a key on an unnamed curve"
    #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    await bench.end()
  }
}
