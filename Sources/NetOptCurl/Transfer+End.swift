import CCurl

// What is wrong with a response at its end, or missing of it (docs/adr/0025).

extension Transfer {
  /// What is wrong with the response, when that is why libcurl has ended the transfer.
  func fault(_ code: CURLcode) -> ResponseFault? {
    if let fault { return fault }
    if let fault = easy.words.fault(code, isHeadComplete: head.isComplete) { return fault }
    return http2Reason
  }

  /// The rule of HTTP/2 that was broken, when nghttp2 gave the stream or its connection up.
  private var http2Reason: ResponseFault? { (http2Fault ?? connection?.fault)?.responseFault }

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
    if head.framing == .end, speaksHTTP2 == true, FrameObserver.isInPlace, !frames.areAll(of: receivedBytes) {
      return http2Reason ?? .streamCut
    }
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
