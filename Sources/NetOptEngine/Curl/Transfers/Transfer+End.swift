import CCurl
import NetOptCore

// The end of a response: data after it on its connection, and faults or missing parts at its end
// (docs/adr/0025).

extension Transfer {
  /// Marks the connection if the data behind this HTTP/1.1 response could be taken for the next response. The
  /// gate then refuses the connection, for good or for a while.
  func guardNextResponse() {
    if head.isAmbiguous { connection?.isTainted = true }
    if head.announcesBody(toHead: exchange.request.method == .head) {
      connection?.quietUntil = exchange.now() + LiveConnection.quietTime
    }
  }

  /// Chooses how libcurl finds the end of the HTTP/2 response whose head comes next: by the response's
  /// length, or by the end of the stream.
  ///
  /// If libcurl uses the length, it ends the transfer at the last byte, and netopt does not learn of data
  /// after this byte. Only nghttp2 compares the length with the data (RFC 9113, section 8.1.1). If libcurl
  /// waits for the end of the stream (END_STREAM), it takes one more turn, an eighth of the cost of a small
  /// response. So libcurl uses the length only if the last frame has already begun to arrive: the end is then
  /// known.
  func chooseEndDetection() {
    if FrameObserver.isActive { easy.ignoresLength = frames.length == nil }
  }

  /// Whether the server has ended the response (END_STREAM).
  var hasStreamEnded: Bool { frames.hasEnded }

  /// Whether the response never has a body, because of the method or the status.
  var hasNoBody: Bool { exchange.request.method == .head || head.hasNoBody }

  /// Whether the connection may carry another request after a small rest of the body, and the rest may be
  /// small.
  ///
  /// - Parameter limit: the maximum number of bytes of the rest; may be negative.
  func isWorthReceiving(_ limit: Int) -> Bool {
    guard speaksHTTP2 == false, version == .http1_1, hasSentBody, limit >= 0,
      exchange.request.options.connection == .pooled, let connection, !connection.isTainted,
      !connection.isGivenUp
    else { return false }
    switch head.framing {
    case .length(let length): return length - Int64(receivedBytes) <= Int64(limit)
    // A body that is long already is probably a feed.
    case .chunked: return receivedBytes <= limit
    case .end: return false
    }
  }

  /// Examines a text that libcurl gives the debug callback (CURLINFO_TEXT), and marks the connection if
  /// libcurl reports bytes that follow a response in the same read. If the response is chunked or has no
  /// body, libcurl drops these bytes and uses the connection again, although more such bytes may be on the
  /// way. libcurl calls the debug callback only while `EasyHandle.isVerbose` is set.
  func noteDebugText(_ text: UnsafeRawBufferPointer) {
    // Texts of lib/transfer.c. If libcurl changes them, the gate still finds those surplus bytes that arrive
    // before the next request.
    for beginning in ["Excess found" as StaticString, "Leftovers after chunking"]
    where text.starts(
      with: UnsafeBufferPointer(start: beginning.utf8Start, count: beginning.utf8CodeUnitCount))
    {
      connection?.isTainted = true
    }
  }

  /// The fault of the response that made libcurl end the transfer; `nil` when the response is not the reason.
  ///
  /// - Parameter code: libcurl's result of the transfer.
  func fault(_ code: CURLcode) -> ResponseFault? {
    if let fault { return fault }
    if !isConnecting, let fault = easy.errorText.fault(code, isHeadComplete: head.isComplete) { return fault }
    return http2Reason
  }

  /// The fault for which nghttp2 rejected the stream or its connection; `nil` when it rejected neither.
  private var http2Reason: ResponseFault? { (http2Fault ?? connection?.fault)?.responseFault }

  /// Whether the stream has ended (END_STREAM; RFC 9113, section 8.1) and libcurl has delivered the whole
  /// body. With a Content-Length, the header of the last frame is proof of the end, once libcurl has
  /// delivered all announced bytes. Without a length, the last frame has to arrive whole, because nghttp2 may
  /// still refuse the frame.
  var isWholeStream: Bool {
    guard frames.length == receivedBytes else { return false }
    return if case .length(let announced) = head.framing { announced == receivedBytes } else {
      frames.hasEnded
    }
  }

  /// Whether libcurl has delivered all that it has read of an HTTP/1.1 response's body, up to the body's end.
  /// libcurl may drop data that waits for a reader (`CurlLibrary.losesPausedBodies`). libcurl 8.14 takes a
  /// chunked body beside "Content-Length: 0" for complete wherever the first read ends.
  private var hasAllThatWasRead: Bool {
    switch head.framing {
    case .length(let length): receivedBytes == length
    case .chunked:
      CurlLibrary.showsChunks ? receivedBytes == chunks.data && chunks.hasEnded : receivedBytes == readBytes
    case .end: receivedBytes == readBytes
    }
  }

  /// Whether libcurl has delivered a whole response that ended before the whole request was sent, and the
  /// stream has closed since. The call can then end, because nothing more is sent on a closed stream. Either
  /// the rest of the request was sent before the stream closed, or the server does not want the rest.
  var isAnsweredEarly: Bool {
    earlyEnd == .closed && head.isComplete && fault == nil && isWholeStream
  }

  /// Whether libcurl has delivered a whole response that ended before the whole request was sent, and waits
  /// for room to send the rest. A server that needs no more of a request should end the stream (RFC 9113,
  /// section 8.1), but some leave it open.
  var waitsBehindAnswer: Bool {
    earlyEnd == .answered && head.isComplete && fault == nil && !isSendPaused && !isReceivePaused
      && isWholeStream
  }

  /// The fault of a response that libcurl takes for complete; `nil` when the response is complete.
  var completionFault: ResponseFault? {
    // `receive` may have refused a piece of the body that libcurl had held back. libcurl forgets such a
    // refusal, and takes the response for complete.
    if let fault { return fault }
    guard head.isComplete else { return .headCut }
    if hasNoBody { return nil }
    if let decoder, !decoder.isComplete { return .codingCut }
    // Each coding encodes even an empty body as at least one byte. So if the connection ended without a byte
    // of the encoded body, the body was cut. Over HTTP/2, END_STREAM shows the end.
    if !hasBodyBytes, head.framing == .end, speaksHTTP2 == false, !head.contentEncoding.isEmpty {
      return .codingCut
    }
    if speaksHTTP2 == true, FrameObserver.isActive, !isWholeStream {
      return http2Reason ?? .streamCut
    }
    if speaksHTTP2 == false, !hasAllThatWasRead { return .partLost }
    if speaksHTTP2 == false, head.framing == .end, let connection,
      connection.reportsTLSEnd, !connection.hasCloseNotify
    {
      return .unannouncedEnd
    }
    return nil
  }

  /// Where an incomplete body ended, for a message.
  var missingPart: String {
    switch head.framing {
    case .length(let length) where length > receivedBytes:
      "\(length - Int64(receivedBytes)) bytes before the end of the body"
    case .chunked: "before the last chunk of the body"
    case .length, .end: "before the end of the body"
    }
  }
}
