import COpenSSL
import Glibc
import NetOptCore

/// The file to which a client writes the secrets of its TLS connections, so that a program such as Wireshark
/// can decrypt them (the NSS key log format, as of SSLKEYLOGFILE).
///
/// libcurl writes such a file when the environment variable SSLKEYLOGFILE names one. netopt does not: every
/// context gets this log or none.
///
/// Unchecked sendable: nothing changes after the creation, and each line is written with one write(2).
final class KeyLog: @unchecked Sendable {
  private let descriptor: Int32

  /// Opens the file to append lines, and creates it if it does not exist. Only its owner can read a file that
  /// is created here. An existing file keeps its permissions.
  ///
  /// - Throws: `invalidConfiguration` for a file that cannot be written, and `unsupported` without OpenSSL.
  init(_ path: String) throws(NetOptError) {
    guard Functions.loaded != nil else { throw OpenSSL.missing("tls.keyLog") }
    descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o600)
    guard descriptor >= 0, FileBytes.isRegular(path) else {
      let reason = descriptor < 0 ? String(cString: strerror(errno)) : "it is not a regular file"
      throw NetOptError(
        .invalidConfiguration, phase: .tls,
        "the key log \(FileBytes.shown(path)) (tls.keyLog) cannot be written: \(reason)")
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Makes the connections of a context write their secrets to a log, or to none.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  static func use(_ log: KeyLog?, in context: OpaquePointer) {
    guard let functions = Functions.loaded else { return }
    guard let log else { return functions.setCallback(context, nil) }
    let reference = Unmanaged.passRetained(log)
    guard functions.setData(context, functions.index, reference.toOpaque()) == 1 else {
      reference.release()
      return functions.setCallback(context, nil)
    }
    functions.setCallback(context) { ssl, line in
      guard let functions = Functions.loaded, let ssl, let line, let context = functions.context(ssl),
        let data = functions.getData(context, functions.index)
      else { return }
      Unmanaged<KeyLog>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.write(line) }
    }
  }

  /// Writes a line. A line that cannot be written is lost.
  private func write(_ line: UnsafePointer<CChar>) {
    var bytes = Array(UnsafeBufferPointer(start: line, count: strlen(line)))
    bytes.append(0x0a)
    _ = Glibc.write(descriptor, bytes, bytes.count)
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_CTX_set_keylog_callback(3), SSL_get_SSL_CTX(3), SSL_CTX_set_ex_data(3),
  /// CRYPTO_get_ex_new_index(3). `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Pointer = OpaquePointer
    typealias Callback = @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Void

    let setCallback: @convention(c) (Pointer, Callback?) -> Void
    let context: @convention(c) (Pointer) -> Pointer?
    let setData: @convention(c) (Pointer, Int32, UnsafeMutableRawPointer?) -> Int32
    let getData: @convention(c) (Pointer, Int32) -> UnsafeMutableRawPointer?
    /// The index under which a context (`SSL_CTX`) keeps its `KeyLog`.
    let index: Int32

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      setCallback = try OpenSSL.function("SSL_CTX_set_keylog_callback")
      context = try OpenSSL.function("SSL_get_SSL_CTX")
      setData = try OpenSSL.function("SSL_CTX_set_ex_data")
      getData = try OpenSSL.function("SSL_CTX_get_ex_data")
      let newIndex: OpenSSL.NewIndex = try OpenSSL.function("CRYPTO_get_ex_new_index")
      index = newIndex(netopt_ex_index_context, 0, nil, nil, nil) { _, log, _, _, _, _ in
        if let log { Unmanaged<KeyLog>.fromOpaque(log).release() }
      }
      guard index >= 0 else { throw OpenSSL.MissingFunction() }
    }
  }
}
