import NetOptCore

// The request's body.

extension Transfer {
  /// Copies more of the request's body to libcurl's buffer.
  func fill(_ buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
    let step = exchange.fill(buffer, from: sentBody.bytes)
    switch step {
    case .bytes(let count):
      sentBody.take(count)
      sentAt = exchange.now()
    case .notYet: isSendPaused = true
    case .failed: break
    }
    return step
  }

  /// Makes the request's body begin again, if it can. Returns whether it does. `offset` must be 0.
  func rewind(to offset: Int64) -> Bool {
    guard offset == 0, exchange.upload?.rewind() ?? true else { return false }
    sentBody.rewind()
    return true
  }

  /// Whether libcurl has taken the whole request body.
  var hasSentBody: Bool { exchange.request.body.length.map { sentBody.bytes >= $0 } ?? sentBody.hasEnded }

  /// Whether nghttp2 may send a DATA frame with the next bytes that it has taken from libcurl. If not, the
  /// transfer fails.
  func maySend(frameOf count: Int) -> Bool {
    // Later releases may count bytes as sent after nghttp2 has taken them.
    let written = CurlLibrary.gathersFrames ? easy.uploadedBytes : Int.max
    guard !sentBody.frame(count, written: written) else { return true }
    fault = .bodyRepeated
    return false
  }
}
