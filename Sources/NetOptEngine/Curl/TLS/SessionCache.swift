import CCurl

/// Owns libcurl's cache of TLS sessions for the connections of one group (libcurl-share(3)). Without it each easy handle has
/// a cache of its own, and a connection resumes only what its own handle has seen.
///
/// libcurl keeps eight sessions in it, one for each address: enough for the addresses of one host. Confined to the loop, so
/// that it needs no lock.
final class SessionCache {
  let pointer: OpaquePointer

  /// `nil` when there is no memory for it. Then nothing is resumed.
  init?() {
    guard let pointer = curl_share_init() else { return nil }
    self.pointer = OpaquePointer(pointer)
    netopt_share_sessions(pointer)
  }

  /// The handles that use it keep it, so none does any more.
  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }
}
