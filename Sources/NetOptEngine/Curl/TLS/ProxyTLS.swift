import COpenSSL

/// The TLS connection to a proxy for plain HTTP, from the beginning of its handshake until OpenSSL frees it.
/// The transfer that opens the connection keeps this object, and so does the connection's `LiveConnection`
/// later. Confined to the loop.
final class ProxyTLS {
  /// OpenSSL's connection, an `SSL`; `nil` before the handshake begins and after OpenSSL has freed the
  /// connection.
  private(set) var ssl: OpaquePointer?

  private init() {}

  /// Makes an object in which `began` will store the connection that OpenSSL makes from a context.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)), for one
  ///   connection.
  /// - Returns: `nil` when OpenSSL cannot keep the object.
  static func attach(to context: OpaquePointer) -> ProxyTLS? {
    guard let functions = Functions.loaded else { return nil }
    let expected = ProxyTLS()
    let reference = Unmanaged.passRetained(expected)
    if functions.setContextData(context, functions.contextIndex, reference.toOpaque()) == 1 {
      return expected
    }
    reference.release()
    return nil
  }

  /// Stores a connection in the object that `attach` made for its context, when the first handshake begins.
  static func began(_ ssl: OpaquePointer) {
    guard let functions = Functions.loaded, let context = functions.context(ssl),
      let data = functions.contextData(context, functions.contextIndex)
    else { return }
    let expected = Unmanaged<ProxyTLS>.fromOpaque(data).takeUnretainedValue()
    guard expected.ssl == nil else { return }
    // OpenSSL releases this reference when it frees the connection.
    let reference = Unmanaged.passRetained(expected)
    if functions.setData(ssl, functions.index, reference.toOpaque()) == 1 {
      expected.ssl = ssl
    } else {
      reference.release()
    }
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_get_SSL_CTX(3), SSL_CTX_set_ex_data(3), SSL_set_ex_data(3), CRYPTO_get_ex_new_index(3).
  /// `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Pointer = OpaquePointer

    let context: @convention(c) (Pointer) -> Pointer?
    let setContextData: @convention(c) (Pointer, Int32, UnsafeMutableRawPointer?) -> Int32
    let contextData: @convention(c) (Pointer, Int32) -> UnsafeMutableRawPointer?
    let setData: @convention(c) (Pointer, Int32, UnsafeMutableRawPointer?) -> Int32
    /// The index under which a context (`SSL_CTX`) keeps its `ProxyTLS`, and the index under which the
    /// connection (`SSL`) keeps it.
    let contextIndex, index: Int32

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      context = try OpenSSL.function("SSL_get_SSL_CTX")
      setContextData = try OpenSSL.function("SSL_CTX_set_ex_data")
      contextData = try OpenSSL.function("SSL_CTX_get_ex_data")
      setData = try OpenSSL.function("SSL_set_ex_data")
      let newIndex: OpenSSL.NewIndex = try OpenSSL.function("CRYPTO_get_ex_new_index")
      contextIndex = newIndex(netopt_ex_index_context, 0, nil, nil, nil) { _, data, _, _, _, _ in
        if let data { Unmanaged<ProxyTLS>.fromOpaque(data).release() }
      }
      index = newIndex(netopt_ex_index_connection, 0, nil, nil, nil) { _, data, _, _, _, _ in
        guard let data else { return }
        let ended = Unmanaged<ProxyTLS>.fromOpaque(data)
        ended._withUnsafeGuaranteedRef { $0.ssl = nil }
        ended.release()
      }
      guard contextIndex >= 0, index >= 0 else { throw OpenSSL.MissingFunction() }
    }
  }
}
