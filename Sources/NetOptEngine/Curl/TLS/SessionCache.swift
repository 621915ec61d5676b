import CCurl

/// Owns libcurl's cache of TLS sessions for the connections of one group (libcurl-share(3)). Without it each
/// easy handle has a cache of its own, and a connection resumes only sessions that its own handle has seen.
///
/// libcurl keeps eight sessions in the cache, one per address. This suffices for the addresses of one host.
/// The cache is confined to the loop, so it needs no lock.
final class SessionCache {
  /// libcurl's share handle (`CURLSH`).
  let pointer: OpaquePointer

  /// Makes an empty cache. `nil` when there is no memory for it; then no session is resumed.
  init?() {
    guard let pointer = curl_share_init() else { return nil }
    self.pointer = OpaquePointer(pointer)
    netopt_share_sessions(pointer)
  }

  /// Each easy handle that uses the cache retains this object. So no easy handle uses the cache any more.
  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }
}
