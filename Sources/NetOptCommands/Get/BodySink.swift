import NetOptCore

/// Writes the response of `netopt get` to its destination. It writes the body chunk by chunk, so the memory
/// does not grow with the body. For a HEAD request, it writes the head.
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

  /// Standard output, if it is the destination.
  private let output: (any ByteOutput)?
  /// The draft of the destination file. `nil` for another destination, and after `take` has put the file in
  /// its place.
  private var file: FileReplacement?

  /// Creates a sink. If the destination is a file, creates the draft of the file at once. So the command
  /// fails before it sends the request when the file cannot be written.
  init(_ destination: Destination, output: any ByteOutput) throws(OutputError) {
    self.output = destination == .output ? output : nil
    if case .file(let name) = destination { file = try FileReplacement(name) }
  }

  /// Writes the whole response to the destination. If the destination is a file, then puts the complete file
  /// in its place.
  ///
  /// - Parameter headOnly: whether the request is HEAD, whose response has no body. If true, writes the head.
  /// - Returns: the number of bytes of the body, after decompression.
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

  /// Formats the status line and the fields as text, one per line, with an empty line at the end.
  private static func text(of head: ResponseHead) -> String {
    let lines = ["HTTP/\(head.version) \(head.status)"] + head.fields.map { "\($0.name): \($0.value)" }
    return lines.map { Text.printable($0) + "\n" }.joined() + "\n"
  }
}
