import NetOptCore

/// Writes a response to its destination: the body chunk by chunk, in constant memory. For a HEAD request,
/// writes the head.
final class BodySink {
  /// The destination of the response.
  enum Destination: Hashable, Sendable {
    /// Standard output.
    case output
    /// The file with this path.
    case file(String)
    /// No destination: the sink only counts the bytes of the body.
    case nowhere
  }

  private let output: (any ByteOutput)?
  private var file: FileReplacement?

  /// Creates a sink. The sink creates the draft of a file at once, so that a file that cannot be written
  /// fails before the request.
  init(_ destination: Destination, output: any ByteOutput) throws(OutputError) {
    self.output = destination == .output ? output : nil
    if case .file(let name) = destination { file = try FileReplacement(name) }
  }

  /// Writes the whole response. Afterwards, a file is complete and in its place.
  ///
  /// - Parameter headOnly: whether to write the head, for a HEAD request.
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

  /// Formats the head as text, one field per line.
  private static func text(of head: ResponseHead) -> String {
    let lines = ["HTTP/\(head.version) \(head.status)"] + head.fields.map { "\($0.name): \($0.value)" }
    return lines.map { Text.printable($0) + "\n" }.joined() + "\n"
  }
}
