import CCurl
import NetOptCore

/// Owns a URL as libcurl has parsed it (libcurl-url(3)). Given to a handle with CURLOPT_CURLU(3) it saves parsing the
/// text for each transfer, a ninth of all instructions.
///
/// Confined to the loop of its `CurlMulti`: libcurl reads it whenever a transfer begins.
final class URLHandle {
  let pointer: OpaquePointer

  /// - Throws: `invalidURL` when libcurl understands the URL in another way than netopt, or `libraryFailed`.
  init(_ url: HTTPURL) throws(NetOptError) {
    guard let pointer = curl_url() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_url gave no handle: out of memory")
    }
    self.pointer = pointer
    let code = curl_url_set(pointer, CURLUPART_URL, url.description, UInt32(CURLU_PATH_AS_IS))
    guard code == CURLUE_OK else {
      // `deinit` frees the handle: it runs when an initialiser throws after the last property was set.
      let reason = String(cString: curl_url_strerror(code))
      throw NetOptError(
        .invalidURL, phase: .send,
        "libcurl does not take the URL \(url.brief) of \(url.length) bytes: \(reason)")
    }
  }

  deinit { curl_url_cleanup(pointer) }
}

/// The URLs that were requested of late.
struct URLHandles {
  /// Beyond so many all are forgotten: who asks for ever other URLs gains nothing from remembering them.
  static let most = 512
  /// The most bytes of a URL that is remembered. A parsed URL takes several times its length.
  static let longest = 16 * 1024

  private var handles: [HTTPURL: URLHandle] = [:]
  /// The one that was asked for last, found without hashing.
  private var last: (url: HTTPURL, handle: URLHandle)?

  /// The handle for a URL. Whoever uses it keeps it.
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
