import CCurl

// Before 8.1.0 libcurl takes every stream without a length for whole when the HTTP/2 library gives a connection up because the peer
// broke its rules, and the connection was to be closed anyhow. All that shows of it is the GOAWAY that is written in answer to what was
// read, in a record that may be another answer too: `CurlMulti.confirm` finds out.

extension OpenSSL {
  private typealias Message =
    @convention(c) (Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?) ->
    Void
  private typealias SetMessage = @convention(c) (OpaquePointer, Message?) -> Void

  /// SSL_CTX_set_msg_callback(3).
  private static let setMessage = symbol("SSL_CTX_set_msg_callback", as: SetMessage.self)

  /// Has the records of connections noted with `LiveConnection`.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func noteRecords(of context: OpaquePointer) {
    Self.setMessage?(context) { isWritten, _, type, bytes, count, ssl, _ in
      // SSL3_RT_HEADER of ssl3.h: the head of a record, with its length at the end (RFC 8446, section 5.1).
      guard type == 0x100, count == 5, let bytes, let ssl, let connection = TLSConnection.record(of: ssl)
      else {
        return
      }
      if isWritten == 0 {
        connection.readRecord()
      } else {
        let length = bytes.loadUnaligned(fromByteOffset: 3, as: UInt16.self).bigEndian
        connection.wroteRecord(ofLength: Int(length))
      }
    }
  }
}
