import NetOptCore

/// The rules for all responses, whatever servers send: a complete response is delivered with exactly its
/// bytes, a response that is cut or breaks the rules is an error, and every call ends.
enum AnswerRules {
  /// Checks an input that a server sends over HTTP/1.1.
  static func heads(_ input: [UInt8]) -> String? {
    fault(AnswerReference.read(input)) { $0.outcome(ofPieces: pieces(input)) }
  }

  /// Checks an input that is a chunked body and the bytes after it.
  static func chunks(_ input: [UInt8]) -> String? {
    heads(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8) + input)
  }

  /// Checks an input that a server sends over HTTP/2 after it has received the first request.
  static func frames(_ input: [UInt8]) -> String? {
    fault(FrameReference.read(input)) { $0.outcome(ofFrames: input) }
  }

  /// The allowed error codes for a response. A timeout is not among them, because the server ends the
  /// connection.
  private static let codes: Set<NetOptError.Code> = [
    .receiveFailed, .sendFailed, .protocolViolation, .headTooLarge, .bodyTooLarge,
  ]

  private static func fault(
    _ reference: ReferenceAnswer, _ outcome: (AnswerProbe) -> AnswerProbe.Outcome
  ) -> String? {
    switch AnswerProbe.shared {
    case .failure(let error): "\(error)"
    case .success(let probe): fault(reference, outcome(probe))
    }
  }

  /// Why the outcome is wrong; `nil` when it is right.
  static func fault(_ reference: ReferenceAnswer, _ outcome: AnswerProbe.Outcome) -> String? {
    switch outcome {
    case .hang: return "the call does not end"
    case .fault(let text): return text
    case .failure(let error):
      guard codes.contains(error.code) else { return "the error is another one: \(error.code): \(error)" }
      if case .whole(let wanted) = reference, wanted.isStrict {
        return "a valid answer with status \(wanted.status) is refused: \(error.code): \(error)"
      }
      return nil
    case .answer(let head, let body):
      for field in head.fields {
        if let fault = HeaderFields.fault(of: field) {
          return "a field that is none reaches the caller: \(fault)"
        }
      }
      switch reference {
      case .open: return nil
      case .broken(let why):
        return "taken for an answer with status \(head.status) and \(body.count) bytes, but \(why)"
      case .whole(let wanted): return fault(wanted, head, body)
      }
    }
  }

  private static func fault(_ wanted: WholeAnswer, _ head: ResponseHead, _ body: [UInt8]) -> String? {
    if head.status != wanted.status { return "the status is \(wanted.status), got \(head.status)" }
    if body != wanted.body { return "the body has \(wanted.body.count) bytes, got \(body.count), or others" }
    let fields = head.fields.map { [$0.name.lowercased(), $0.value] }
    let wantedFields = wanted.fields.map { [$0.name, String(decoding: $0.value, as: UTF8.self)] }
    if wanted.isStrict, fields != wantedFields { return "the fields are \(wantedFields), got \(fields)" }
    return nil
  }

  /// Splits the input into the pieces to send: at one place, which the input determines, or not at all.
  private static func pieces(_ input: [UInt8]) -> [[UInt8]] {
    let sum = input.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
    var random = SplitMix64(seed: sum)
    guard input.count > 1, random.below(2) == 0 else { return [input] }
    let index = 1 + Int(random.below(UInt64(input.count - 1)))
    return [Array(input[..<index]), Array(input[index...])]
  }
}
