import CCurl
import NetOptCore

// What follows a response on its connection, and what is wrong with it at its end, or missing of it (docs/adr/0025).

extension Transfer {
  /// Marks the connection when what follows an HTTP/1.1 answer on it may be taken for the next one.
  func watchTheEnd() {
    if head.isAmbiguous { connection?.isTainted = true }
    if head.announcesBody(toHead: exchange.request.method == .head) {
      connection?.isQuietFrom = exchange.now() + LiveConnection.quietTime
    }
  }

  /// Chooses by what libcurl finds the end of an HTTP/2 answer whose head comes next. By a length it would end the transfer at the last byte, and
  /// learn nothing of what the stream has behind it; nghttp2 alone compares the two (RFC 9113, section 8.1.1). Without one it takes a further
  /// turn for the end of the stream, an eighth of what a small answer costs. That is saved where the end has come already.
  func followLength() {
    if FrameObserver.isInPlace { easy.ignoresLength = frames.length == nil }
  }

  /// Whether the server has ended the answer (END_STREAM).
  var hasStreamEnded: Bool { frames.hasEnded }

  var hasNoBody: Bool { exchange.request.method == .head || head.hasNoBody }

  /// libcurl says what it does, while it is asked to: also when something follows an answer in the same read, which it drops where the answer has no
  /// body or comes in chunks. It uses the connection again, on which the rest may be on its way.
  func says(_ text: UnsafeRawBufferPointer) {
    // The texts of lib/transfer.c. One that is not known leaves the gate, which sees the rest when it has come.
    for beginning in ["Excess found" as StaticString, "Leftovers after chunking"]
    where text.starts(
      with: UnsafeBufferPointer(start: beginning.utf8Start, count: beginning.utf8CodeUnitCount))
    {
      connection?.isTainted = true
    }
  }

  /// What is wrong with the response, when that is why libcurl has ended the transfer.
  func fault(_ code: CURLcode) -> ResponseFault? {
    if let fault { return fault }
    if !isConnecting, let fault = easy.words.fault(code, isHeadComplete: head.isComplete) { return fault }
    return http2Reason
  }

  /// The rule of HTTP/2 that was broken, when nghttp2 gave the stream or its connection up.
  private var http2Reason: ResponseFault? { (http2Fault ?? connection?.fault)?.responseFault }

  /// Whether the stream was ended (END_STREAM; RFC 9113, section 8.1), and all of its body was handed over. A last frame that has begun to come
  /// suffices where all bytes came that were announced: nghttp2 may still refuse it, when they are not as many.
  var isWholeStream: Bool {
    guard frames.length == receivedBytes else { return false }
    return if case .length(let announced) = head.framing { announced == receivedBytes } else {
      frames.hasEnded
    }
  }

  /// Whether libcurl has handed over all that it has read of an HTTP/1.1 answer's body. It may drop what waits for a reader
  /// (`CurlLibrary.losesPausedBodies`).
  private var hasAllThatWasRead: Bool {
    switch head.framing {
    case .length(let length): receivedBytes == length
    case .chunked: receivedBytes == (CurlLibrary.showsChunks ? chunks.data : readBytes)
    case .end: receivedBytes == readBytes
    }
  }

  /// Whether all of an answer was handed over that ended before the request was sent whole, and nothing more is to be sent: the request
  /// has been, or the server wants no more of it.
  var isAnsweredEarly: Bool {
    earlyEnd == .closed && head.isComplete && fault == nil && isWholeStream
  }

  /// Whether all of an answer was handed over that ended before the request was sent whole, and libcurl waits for room to send the rest. A
  /// server that needs no more of a request may leave it so, although it is to end the stream (RFC 9113, section 8.1).
  var waitsBehindAnswer: Bool {
    earlyEnd == .answered && head.isComplete && fault == nil && !isSendPaused && !isReceivePaused
      && isWholeStream
  }

  /// What is wrong with a response that libcurl takes for whole, or missing of it; `nil` when it is whole.
  var missing: ResponseFault? {
    // libcurl forgets what was refused of a piece that it had held back.
    if let fault { return fault }
    guard head.isComplete else { return .headCut }
    if hasNoBody { return nil }
    if let decoder, !decoder.isComplete { return .codingCut }
    // No coding stands for nothing by nothing. Over HTTP/2 the stream's end was announced.
    if !hasBody, head.framing == .end, speaksHTTP2 == false, !head.contentEncoding.isEmpty {
      return .codingCut
    }
    if speaksHTTP2 == true, FrameObserver.isInPlace, !isWholeStream {
      return http2Reason ?? .streamCut
    }
    if speaksHTTP2 == false, !hasAllThatWasRead { return .partLost }
    if speaksHTTP2 == false, head.framing == .end, let connection,
      connection.reportsItsEnd, !connection.hasCloseNotify
    {
      return .unannouncedEnd
    }
    return nil
  }

  /// Where a body ended whose end has not come, for a message.
  var whatIsMissing: String {
    switch head.framing {
    case .length(let length) where length > receivedBytes:
      "\(length - Int64(receivedBytes)) bytes before the end of the body"
    case .chunked: "before the last chunk of the body"
    case .length, .end: "before the end of the body"
    }
  }
}
