/// Compares the bytes of a stream with the length that it announced.
package struct AnnouncedLength: Sendable {
  /// The bytes that have not come; `nil` if the stream has announced no length.
  private var left: Int64?

  /// - Parameter length: the announced length, not negative; `nil` for none.
  package init(_ length: Int64?) { left = length }

  /// Takes the next chunk, or `nil` for the end.
  ///
  /// - Throws: `invalidRequest` if the stream has more or fewer bytes than announced.
  package mutating func take(_ chunk: [UInt8]?) throws(NetOptError) {
    guard let known = left else { return }
    guard let count = chunk?.count, Int64(count) <= known else {
      if chunk == nil, known == 0 { return }
      throw NetOptError(
        .invalidRequest, phase: .send,
        "a stream in the body has another number of bytes than it announced")
    }
    left = known - Int64(count)
  }

  /// The error of a length that is negative, or of lengths whose sum is too large for 64 bits.
  package static var impossible: NetOptError {
    NetOptError(
      .invalidRequest, phase: .send,
      "the length of a stream in the body is negative or too large; leave it out if you do not know it")
  }
}
