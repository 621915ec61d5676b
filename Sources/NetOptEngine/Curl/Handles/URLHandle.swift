import CCurl
import NetOptCore

/// Owns a URL in libcurl's parsed form, a `CURLU` (libcurl-url(3)). With CURLOPT_CURLU(3), an easy handle
/// uses the parsed form. Otherwise libcurl would parse the text for each transfer, which takes a ninth of all
/// instructions of a request.
///
/// Confined to the loop of its `CurlMulti`: libcurl reads the `CURLU` on the loop's thread whenever a
/// transfer begins.
final class URLHandle {
  /// The `CURLU`.
  let pointer: OpaquePointer

  /// - Throws: `invalidURL` when libcurl does not accept the URL; `libraryFailed` without memory.
  init(_ url: HTTPURL) throws(NetOptError) {
    guard let pointer = curl_url() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_url returned no handle: out of memory")
    }
    self.pointer = pointer
    let code = curl_url_set(pointer, CURLUPART_URL, url.description, UInt32(CURLU_PATH_AS_IS))
    guard code == CURLUE_OK else {
      // `deinit` frees the `CURLU`. It also runs when an initialiser throws after setting the last property.
      let reason = String(cString: curl_url_strerror(code))
      throw NetOptError(
        .invalidURL, phase: .send,
        "libcurl rejects the URL \(url.brief) of \(url.description.utf8.count) bytes: \(reason)")
    }
  }

  deinit { curl_url_cleanup(pointer) }
}

/// A cache of the parsed URLs that were requested recently. Confined to the loop of its `CurlMulti`.
struct URLHandles {
  /// The maximum number of URLs in the cache. When the cache is full, all URLs are removed before the next
  /// one is added. A caller that requests ever new URLs gains nothing from the cache anyway.
  static let most = 512
  /// The maximum length in bytes of the path and query of a URL in the cache. A parsed URL takes several
  /// times the memory of its text.
  static let longest = 16 * 1024

  private var handles: [HTTPURL: URLHandle] = [:]
  /// The URL that was last requested from the cache. A comparison finds it without hashing.
  private var last: (url: HTTPURL, handle: URLHandle)?

  /// Returns the parsed form of a URL. The caller must keep the `URLHandle` alive while libcurl uses it.
  mutating func handle(for url: HTTPURL) throws(NetOptError) -> URLHandle {
    if let last, last.url == url { return last.handle }
    guard url.target.utf8.count <= Self.longest else { return try URLHandle(url) }
    let handle: URLHandle
    if let known = handles[url] {
      handle = known
    } else {
      handle = try URLHandle(url)
      if handles.count == Self.most { handles.removeAll(keepingCapacity: true) }
      handles[url] = handle
    }
    last = (url, handle)
    return handle
  }
}
