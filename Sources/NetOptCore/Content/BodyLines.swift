extension ResponseBody {
  /// The body as lines of UTF-8, without LF or CR LF. A last line without an end is a line too. Invalid bytes
  /// become U+FFFD, and a byte order mark is removed. The sequence supports one iteration: what a loop that
  /// ends early has read ahead is lost.
  ///
  /// ```swift
  /// for try await line in response.body.lines { handle(line) }
  /// ```
  ///
  /// Iteration throws the errors of the body, and `bodyTooLarge` for a line of more than 1 MiB, not counting
  /// the LF. It ends after an error.
  public var lines: some AsyncSequence<String, NetOptError> & Sendable { BodyLines(body: self) }
}

/// The lines of a body.
struct BodyLines: AsyncSequence, Sendable {
  typealias Element = String
  typealias Failure = NetOptError

  /// The maximum number of bytes in a line.
  static let longest = 1 << 20

  let body: ResponseBody

  func makeAsyncIterator() -> Iterator { Iterator(chunks: body.makeAsyncIterator()) }

  struct Iterator: AsyncIteratorProtocol {
    var chunks: ResponseBody.AsyncIterator
    /// The bytes of the last chunk that `next` has not added to a line yet.
    private var chunk: ArraySlice<UInt8> = []
    /// The beginning of a line whose end has not arrived.
    private var line: [UInt8] = []
    private var isOver = false
    private var isFirst = true

    init(chunks: ResponseBody.AsyncIterator) { self.chunks = chunks }

    mutating func next() async throws(NetOptError) -> String? { try await next(isolation: #isolation) }

    mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(NetOptError) -> String? {
      while !isOver {
        let end = chunk.firstIndex(of: UInt8(ascii: "\n"))
        line += chunk[..<(end ?? chunk.endIndex)]
        if line.count > BodyLines.longest {
          isOver = true
          throw NetOptError(
            .bodyTooLarge, phase: .receive,
            "a line of the body is longer than \(BodyLines.longest) bytes; read the body chunk by chunk")
        }
        if let end {
          chunk = chunk[chunk.index(after: end)...]
          return takeLine()
        }
        // Set before the read, so that the iteration has ended if the read throws.
        isOver = true
        chunk = []
        if let next = try await chunks.next(isolation: actor) {
          isOver = false
          chunk = next[...]
        } else if !line.isEmpty {
          return takeLine()
        }
      }
      return nil
    }

    private mutating func takeLine() -> String {
      defer {
        line.removeAll(keepingCapacity: true)
        isFirst = false
      }
      let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line[...]
      let hasMark = isFirst && text.starts(with: NetOptResponse.byteOrderMark)
      return String(decoding: text.dropFirst(hasMark ? 3 : 0), as: UTF8.self)
    }
  }
}
