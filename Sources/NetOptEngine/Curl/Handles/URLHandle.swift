import CCurl
import NetOptCore

/// Owns a URL in libcurl's parsed form (libcurl-url(3)). With CURLOPT_CURLU(3), a handle uses the parsed form
/// and does not parse the text for each transfer, which takes a ninth of all instructions.
///
/// Confined to the loop of its `CurlMulti`: libcurl reads the URL whenever a transfer begins.
final class URLHandle {
  let pointer: OpaquePointer

  /// - Throws: `invalidURL` when libcurl does not accept the URL; `libraryFailed` without memory.
  init(_ url: HTTPURL) throws(NetOptError) {
    guard let pointer = curl_url() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_url returned no handle: out of memory")
    }
    self.pointer = pointer
    let code = curl_url_set(pointer, CURLUPART_URL, url.description, UInt32(CURLU_PATH_AS_IS))
    guard code == CURLUE_OK else {
      // `deinit` frees the handle: it also runs when an initialiser throws after the last property was set.
      let reason = String(cString: curl_url_strerror(code))
      throw NetOptError(
        .invalidURL, phase: .send,
        "libcurl rejects the URL \(url.brief) of \(url.length) bytes: \(reason)")
    }
  }

  deinit { curl_url_cleanup(pointer) }
}

/// The URLs that were requested recently.
struct URLHandles {
  /// The most URLs to remember. When there are more, all are dropped: a caller that keeps requesting new URLs
  /// gains nothing from this cache.
  static let most = 512
  /// The longest URL to remember, in bytes. A parsed URL takes several times its length.
  static let longest = 16 * 1024

  private var handles: [HTTPURL: URLHandle] = [:]
  /// The URL that was requested last, found without hashing.
  private var last: (url: HTTPURL, handle: URLHandle)?

  /// Returns the handle for a URL. The caller keeps the handle alive while it uses it.
  mutating func handle(for url: HTTPURL) throws(NetOptError) -> URLHandle {
    if let last, last.url == url { return last.handle }
    guard url.length <= Self.longest else { return try URLHandle(url) }
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
