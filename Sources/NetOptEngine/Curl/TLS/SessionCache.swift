import CCurl

/// Owns libcurl's cache of TLS sessions for the connections of one group (libcurl-share(3)). Without this
/// cache, each easy handle would have its own, and a connection would resume only sessions that its own easy
/// handle received.
///
/// libcurl keeps eight sessions in the cache, one for each address. This suffices for the addresses of one
/// host. The cache is confined to the loop, so it needs no lock.
final class SessionCache {
  /// libcurl's share handle (`CURLSH`).
  let pointer: OpaquePointer

  /// Makes an empty cache. `nil` when there is no memory for it; then no session is resumed.
  init?() {
    guard let pointer = curl_share_init() else { return nil }
    self.pointer = OpaquePointer(pointer)
    netopt_share_sessions(pointer)
  }

  /// Frees the cache. Each easy handle that uses the cache retains this object, so none uses it any more.
  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }
}
