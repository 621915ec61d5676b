import NetOptCore

/// Takes an answer in: the body, chunk by chunk and so in constant memory; for a HEAD request the head instead.
final class BodySink {
  /// Where the answer goes.
  enum Destination: Hashable, Sendable {
    /// Standard output.
    case output
    /// A file.
    case file(String)
    /// Nowhere: its bytes are counted.
    case nowhere
  }

  private let output: (any ByteOutput)?
  private var file: FileReplacement?

  /// Gets ready. A file is begun at once, so that it is known to be writable before anything is requested.
  init(_ destination: Destination, output: any ByteOutput) throws(OutputError) {
    self.output = destination == .output ? output : nil
    if case .file(let name) = destination { file = try FileReplacement(name) }
  }

  /// Takes the whole answer in; a file is in its place afterwards.
  ///
  /// - Parameter headOnly: whether the head is what was asked for.
  /// - Returns: the number of bytes of the body.
  func take(_ response: NetOptResponse, headOnly: Bool) async throws -> Int64 {
    var count: Int64 = 0
    if headOnly { try write(Array(Self.text(of: response.head).utf8)) }
    for try await chunk in response.body {
      try write(chunk)
      count += Int64(chunk.count)
    }
    if let file = file.take() { try file.commit() }
    return count
  }

  private func write(_ bytes: [UInt8]) throws(OutputError) {
    try output?.write(bytes)
    try file?.write(bytes)
  }

  /// The head as text, one field a line.
  private static func text(of head: ResponseHead) -> String {
    let lines = ["HTTP/\(head.version) \(head.status)"] + head.fields.map { "\($0.name): \($0.value)" }
    return lines.map { Text.printable($0) + "\n" }.joined() + "\n"
  }
}
