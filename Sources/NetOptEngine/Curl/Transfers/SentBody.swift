/// How much of a request's body libcurl has taken, and how much of it nghttp2 has taken from libcurl.
///
/// libcurl 7.88.0 to 8.0.1 may pass a part of a body to nghttp2 twice. When nghttp2 has taken the part, and the
/// socket then has no room for a small frame of another stream, `cf_h2_send` (lib/http2.c) reports that
/// nothing was sent. libcurl passes the same bytes again, and at the beginning of a request even the head. The
/// total then matches the content length, so the server accepts the altered body. The state is a value without
/// I/O; it finds such bytes before they are sent.
struct SentBody: Equatable {
  /// The number of bytes that libcurl has taken from netopt.
  private(set) var bytes = 0
  /// Whether libcurl has taken the end of the body.
  private(set) var hasEnded = false
  /// The number of bytes that nghttp2 has taken for DATA frames of the present stream.
  private var framed = 0
  /// Whether libcurl has begun to pass a part of the body, of which nghttp2 has taken no byte.
  private var beginsPart = false

  /// Records bytes that libcurl has taken. 0 means the end of the body.
  mutating func take(_ count: Int) {
    bytes += count
    hasEnded = count == 0
  }

  /// Records that the body begins again.
  mutating func rewind() { (bytes, hasEnded) = (0, false) }

  /// Records that the head is written on a new stream.
  mutating func beginStream() { (framed, beginsPart) = (0, false) }

  /// Records that libcurl may be about to pass a part of the body to nghttp2.
  mutating func beginPart() { beginsPart = true }

  /// Records bytes that nghttp2 has taken from libcurl. Returns whether they are the next bytes of the body.
  ///
  /// - Parameter written: the number of body bytes that libcurl takes for sent. A part begins behind them.
  mutating func frame(_ count: Int, written: Int) -> Bool {
    let isRepeated = beginsPart && framed > written
    beginsPart = false
    framed += count
    return !isRepeated && framed <= bytes
  }
}
