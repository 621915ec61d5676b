import NetOptCore
import Testing

@testable import NetOptCurl

@Suite("libcurl reads no more of a connection than its streams' buffers take") struct RecordBudgetTests {
  /// The bytes of a record on the wire.
  private func record(_ length: Int, type: UInt8 = 23) -> [UInt8] {
    [type, 3, 3, UInt8(length >> 8), UInt8(length & 0xff)] + [UInt8](repeating: 0, count: length)
  }

  /// Reads a record as OpenSSL does, its head and then its body, as far as the budget allows.
  ///
  /// - Returns: what was not read.
  private func read(_ record: [UInt8], with budget: inout RecordBudget) -> ArraySlice<UInt8> {
    var rest = record[...]
    for count in [5, record.count] {
      guard budget.mayRead, !rest.isEmpty else { return rest }
      let part = rest.prefix(count)
      Array(part).withUnsafeBytes { budget.read($0) }
      rest = rest.dropFirst(count)
    }
    return rest
  }

  private func shared() -> RecordBudget {
    var budget = RecordBudget(isStrict: true)
    budget.streams = 2
    return budget
  }

  @Test("the first record of a turn is read whatever its size, a second one when both fit")
  func sizes() {
    var budget = shared()
    #expect(read(record(16_640), with: &budget).isEmpty)
    let length = RecordBudget.shared - 16_640 + 1
    #expect(read(record(length), with: &budget).count == length)
    budget.beginTurn()
    #expect(budget.mayRead)
  }

  @Test("a connection without streams is read without limit, as its end is")
  func idle() {
    var budget = RecordBudget(isStrict: true)
    for _ in 0..<100 { #expect(read(record(16_640), with: &budget).isEmpty) }
    #expect(budget.mayEnd)
  }

  @Test("one stream alone is given more", arguments: [true, false])
  func single(isStrict: Bool) {
    var budget = RecordBudget(isStrict: isStrict)
    budget.streams = 1
    var count = 0
    while read(record(16_000), with: &budget).isEmpty { count += 1 }
    #expect(count == RecordBudget.single / 16_000)
  }

  @Test(
    "what may be close_notify comes alone, and so does the connection's end",
    arguments: [(21, 26), (21, 2), (23, 19)])
  func end(type: UInt8, length: Int) {
    var budget = shared()
    #expect(budget.mayEnd)
    #expect(read(record(100), with: &budget).isEmpty)
    #expect(!budget.mayEnd)
    let rest = read(record(length, type: type), with: &budget)
    #expect(rest.count == length)
    budget.beginTurn()
    #expect(budget.mayRead)
    #expect(budget.mayEnd)
    Array(rest).withUnsafeBytes { budget.read($0) }
    #expect(!budget.mayEnd)
  }

  @Test("what no request gets anything of is a flood in the end, and what one does is none")
  func flood() {
    var budget = RecordBudget(isStrict: true)
    let bytes = record(16_384)
    for _ in 0..<8192 {
      #expect(!budget.isFlooded)
      #expect(read(bytes, with: &budget).isEmpty)
      budget.claimed()
    }
    for _ in 0..<4096 {
      #expect(!budget.isFlooded)
      #expect(read(bytes, with: &budget).isEmpty)
    }
    #expect(read(bytes, with: &budget).isEmpty)
    #expect(budget.isFlooded)
  }

  @Test("in every order of records and looks, no stream's buffer overflows", arguments: 0..<300)
  func overflow(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var budget = RecordBudget(isStrict: true)
    var buffered = [Int](repeating: 0, count: Int.random(in: 2...6, using: &random))
    budget.streams = buffered.count
    var bytes: [UInt8] = []
    var position = 0

    /// Reads until a record is complete or no more may be read, in whatever pieces the socket has it.
    func readRecord() -> Bool {
      if position == bytes.count {
        bytes = record(Int.random(in: 26...(Bool.random(using: &random) ? 300 : 16_640), using: &random))
        position = 0
      }
      while position < bytes.count, budget.mayRead {
        let end = position < 5 ? 5 : bytes.count
        let next = Int.random(in: position + 1...end, using: &random)
        bytes[position..<next].withUnsafeBytes { budget.read($0) }
        position = next
        // The rest may come with the next turn.
        if Int.random(in: 0..<20, using: &random) == 0 { break }
      }
      return position == bytes.count
    }

    for _ in 0..<400 {
      // What `CurlMulti.lookAfterStreams` sees to.
      for index in buffered.indices { buffered[index] = 0 }
      budget.beginTurn()
      while readRecord() {
        var left = bytes.count - 5 - 17
        while left > 9 {
          let data = Int.random(in: 1...left - 9, using: &random)
          buffered[Int.random(in: buffered.indices, using: &random)] += data
          left -= data + 9
        }
        #expect(buffered.allSatisfy { $0 <= RecordBudget.shared })
        if Bool.random(using: &random) { buffered[Int.random(in: buffered.indices, using: &random)] = 0 }
      }
    }
  }
}
