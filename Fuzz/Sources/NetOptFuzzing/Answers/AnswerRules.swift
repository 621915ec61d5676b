import NetOptCore

/// The rules for every response, whatever bytes a server sends: the client delivers a complete response with
/// exactly its bytes, a response that is cut or breaks the rules is an error, and every call ends.
///
/// Each function returns a description of the broken rule, or `nil` when all rules hold.
enum AnswerRules {
  /// Checks an input that is all that a server sends over HTTP/1.1 before it ends the connection.
  static func heads(_ input: [UInt8]) -> String? {
    fault(AnswerReference.read(input)) { $0.outcome(ofPieces: pieces(input)) }
  }

  /// Checks an input that is a chunked body and the bytes after it.
  static func chunks(_ input: [UInt8]) -> String? {
    heads(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8) + input)
  }

  /// Checks an input that is what a server sends over HTTP/2 after its SETTINGS, once it has received the
  /// first request.
  static func frames(_ input: [UInt8]) -> String? {
    fault(FrameReference.read(input)) { $0.outcome(ofFrames: input) }
  }

  /// The error codes with which a call may fail. A timeout is not among them: the server ends the connection,
  /// so no call has to wait for its deadline.
  private static let codes: Set<NetOptError.Code> = [
    .receiveFailed, .sendFailed, .protocolViolation, .headTooLarge, .bodyTooLarge,
  ]

  /// Compares a reference's result with the outcome of a request.
  ///
  /// - Parameter outcome: sends the request with the shared probe.
  private static func fault(
    _ reference: ReferenceAnswer, _ outcome: (AnswerProbe) -> AnswerProbe.Outcome
  ) -> String? {
    switch AnswerProbe.shared {
    case .failure(let error): "\(error)"
    case .success(let probe): fault(reference, outcome(probe))
    }
  }

  /// Returns why the outcome of a request is wrong for the result of the reference; `nil` when it is right.
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

  /// Compares a delivered response with the response that the reference has read.
  private static func fault(_ wanted: WholeAnswer, _ head: ResponseHead, _ body: [UInt8]) -> String? {
    if head.status != wanted.status { return "the status is \(wanted.status), got \(head.status)" }
    if body != wanted.body { return "the body has \(wanted.body.count) bytes, got \(body.count), or others" }
    let fields = head.fields.map { [$0.name.lowercased(), $0.value] }
    let wantedFields = wanted.fields.map { [$0.name, String(decoding: $0.value, as: UTF8.self)] }
    if wanted.isStrict, fields != wantedFields { return "the fields are \(wantedFields), got \(fields)" }
    return nil
  }

  /// Splits the input into the pieces that the server sends: two pieces or one. A hash of the input decides,
  /// so an input is always split in the same way.
  private static func pieces(_ input: [UInt8]) -> [[UInt8]] {
    let sum = input.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
    var random = SplitMix64(seed: sum)
    guard input.count > 1, random.below(2) == 0 else { return [input] }
    let index = 1 + Int(random.below(UInt64(input.count - 1)))
    return [Array(input[..<index]), Array(input[index...])]
  }
}
