import NetOptCore

/// The fault because of which netopt, libcurl or nghttp2 refuses the head or the trailers of a response.
enum HeadFault: Hashable, Sendable {
  /// The first line does not begin with `HTTP/`.
  case notHTTP
  /// The first line begins with `HTTP/`, but no known version follows, as in `HTTP/11`.
  case unsupportedVersion
  /// The first line has no valid status.
  case status
  /// The status is 101 (Switching Protocols), for which netopt never asks.
  case interim101
  /// The response arrived before the request was sent.
  case unsolicited
  /// The response has a known version of HTTP, but not the version that the connection speaks.
  case versionMismatch
  /// A line has no end, because the connection ended in it.
  case lineCut
  /// A line has no colon and is therefore not a field.
  case noColon
  /// A field has no name.
  case noName
  /// A field's name contains a byte that names must not contain.
  case name(UInt8)
  /// A field's value contains a byte that values must not contain.
  case value(UInt8)
  /// libcurl found a NUL in a line of the head.
  case nul
  /// A field has a long run (`SlowText`).
  case longRun
  /// The first line after the status line is a fold: it begins with white space and continues no field.
  case firstFold
  /// A field that determines the end or the content coding of the body is written on several lines (folded).
  case framingFold
  /// The heads have more folds than `ResponseHeadReader.mostFolds`.
  case folds
  /// A line of the trailers is not a field.
  case trailer
  /// A line of the trailers is longer than the 4 KiB that libcurl accepts.
  case trailerTooLong
  /// The head or the trailers come in more CONTINUATION frames (HTTP/2) than nghttp2 accepts.
  case continuations
  /// A Content-Length is not a valid length, or two of them differ.
  case contentLength
  /// The Transfer-Encoding is not a single `chunked`. A request of netopt allows no other transfer coding.
  case transferCoding
  /// The heads and trailers of one response have more bytes than `ResponseHeadReader.limit`.
  case tooLarge
  /// The heads and trailers of one response have more lines than `ResponseHeadReader.mostLines`.
  case tooManyLines
  /// The head is larger than libcurl accepts. The limit depends on libcurl's release and on the HTTP version.
  case tooLargeForLibcurl(kibibytes: Int)
  /// One line of the head is longer than the 100 KiB that libcurl accepts.
  case lineTooLong

  /// Whether the head or the trailers are only larger than netopt, libcurl or nghttp2 accepts, and break no
  /// rule of HTTP. False for `folds`: HTTP forbids servers to send any fold.
  var exceedsSizeLimit: Bool {
    switch self {
    case .tooLarge, .tooManyLines, .tooLargeForLibcurl, .lineTooLong, .trailerTooLong, .continuations: true
    default: false
    }
  }

  /// The faulty part of the response, for a message that begins with "the server sent".
  var description: String {
    switch self {
    case .notHTTP: "data that is not HTTP; check which service listens there (RFC 9112, section 4)"
    case .unsupportedVersion:
      "a status line whose HTTP version is neither 1.0 nor 1.1 (RFC 9112, section 2.3)"
    case .status: "a status line without a status from 100 to 999 (RFC 9112, section 4)"
    case .interim101:
      "status 101, although the request asked for no other protocol (RFC 9110, section 15.2.2)"
    case .unsolicited: "data before it received a request, which is not a response (RFC 9112, section 9.2)"
    case .versionMismatch: "a response whose HTTP version differs from that of the connection"
    case .lineCut: "a head with a line that has no line end (RFC 9112, section 2.2)"
    case .noColon: "a head with a field line without a colon (RFC 9112, section 5)"
    case .noName: "a field without a name (RFC 9110, section 5.1)"
    case .name(let byte): "a field whose name contains \(byte.named) (RFC 9110, section 5.1)"
    case .value(let byte): "a field whose value contains \(byte.named) (RFC 9110, section 5.5)"
    case .nul: "a head that contains a NUL (RFC 9110, section 5.5)"
    case .longRun: "a field with \(SlowText.longRun)"
    case .firstFold:
      "a first field line that begins with a space, like the continuation of a field (RFC 9112, section 5.2)"
    case .framingFold:
      "a Content-Length, Content-Encoding or Transfer-Encoding on more than one line (RFC 9112, section 5.2)"
    case .folds: "a head with more than \(ResponseHeadReader.mostFolds) folded lines (RFC 9112, section 5.2)"
    case .trailer: "a line after the last chunk that is not a field (RFC 9112, section 7.1.2)"
    case .trailerTooLong: "a field after the last chunk that is longer than 4 KiB, which is libcurl's limit"
    case .continuations: "a head or trailers in more CONTINUATION frames than nghttp2 accepts"
    case .contentLength: "an invalid Content-Length, or two different ones (RFC 9112, section 6.3)"
    case .transferCoding: "a Transfer-Encoding that the request did not ask for (RFC 9112, section 6.1)"
    case .tooLarge:
      "more than \(ResponseHeadReader.limit / 1024) KiB of heads and trailers, which is netopt's limit"
    case .tooManyLines:
      "more than \(ResponseHeadReader.mostLines) lines of heads and trailers, which is netopt's limit"
    case .tooLargeForLibcurl(let kibibytes):
      "a head of more than \(kibibytes) KiB, which is the limit of libcurl on this machine"
    case .lineTooLong: "a line of its head that is longer than 100 KiB, which is libcurl's limit"
    }
  }
}
