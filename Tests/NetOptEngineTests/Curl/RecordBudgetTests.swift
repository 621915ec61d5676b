import NetOptCore
import Testing

@testable import NetOptEngine

@Suite("what libcurl may read of an HTTP/2 connection") struct RecordBudgetTests {
  /// Returns a TLS record as bytes on the wire: its header of 5 bytes, and its content.
  ///
  /// - Parameters:
  ///   - length: the length of the content in bytes.
  ///   - type: the type of the record (RFC 8446, section 5.1). Default: application data.
  private func record(_ length: Int, type: UInt8 = 23) -> [UInt8] {
    [type, 3, 3, UInt8(length >> 8), UInt8(length & 0xff)] + [UInt8](repeating: 0, count: length)
  }

  @Test("a turn may read up to the limit, and the next turn has the whole limit again")
  func turns() {
    var budget = RecordBudget()
    // With its header, the record has 16 KiB.
    let bytes = record(16_379)
    for _ in 0..<2 {
      var count = 0
      while budget.mayRead {
        bytes.withUnsafeBytes { budget.read($0) }
        count += bytes.count
      }
      #expect(count == RecordBudget.limit)
      budget.beginTurn()
    }
  }

  @Test("64 MiB without data for a request are a flood, and any amount with such data is not")
  func flood() {
    var budget = RecordBudget()
    // With its header, the record has 16 KiB, so 4096 of them have 64 MiB.
    let bytes = record(16_379)
    for _ in 0..<8192 {
      #expect(!budget.isFlooded)
      bytes.withUnsafeBytes { budget.read($0) }
      budget.claimed()
    }
    for _ in 0...4096 {
      #expect(!budget.isFlooded)
      bytes.withUnsafeBytes { budget.read($0) }
    }
    #expect(budget.isFlooded)
  }

  @Test("the budget knows whether it is inside a record, in pieces of any size", arguments: 0..<300)
  func pieces(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var budget = RecordBudget()
    var bytes: [UInt8] = []
    // The positions between two records, the start and the end included.
    var ends: Set<Int> = [0]
    for _ in 0..<20 {
      bytes += record(Int.random(in: 0...(Bool.random(using: &random) ? 3 : 16_640), using: &random))
      ends.insert(bytes.count)
    }
    var position = 0
    while position < bytes.count {
      let most = Bool.random(using: &random) ? 6 : 20_000
      let next = min(position + Int.random(in: 1...most, using: &random), bytes.count)
      bytes[position..<next].withUnsafeBytes { budget.read($0) }
      position = next
      #expect(budget.isInRecord == !ends.contains(position))
    }
  }

  @Test("256 records of 17 bytes in two reads each end a turn, and small reads are no flood")
  func smallReads() {
    var budget = RecordBudget()
    let bytes = record(17)
    var count = 0
    while budget.mayRead {
      bytes[..<5].withUnsafeBytes { budget.read($0) }
      bytes[5...].withUnsafeBytes { budget.read($0) }
      count += 1
    }
    #expect(count == 256)
    for _ in 0..<100_000 { bytes.withUnsafeBytes { budget.read($0) } }
    #expect(!budget.isFlooded)
  }

  @Test("about 40 session tickets end a turn, and about 10,000 without a response are a flood")
  func messages() {
    var budget = RecordBudget()
    let ticket = record(34)
    var count = 0
    while !budget.isFlooded {
      budget.beginTurn()
      var countOfTurn = 0
      while budget.mayRead {
        ticket.withUnsafeBytes { budget.read($0) }
        // Reading a session ticket makes three state changes (`RecordBudget.stateChangeCost`).
        for _ in 0..<3 { budget.chargeStateChange() }
        countOfTurn += 1
      }
      #expect(36...42 ~= countOfTurn)
      count += countOfTurn
    }
    #expect(10_000...11_000 ~= count)
    // Tickets are no flood if parts of responses arrive between them.
    for _ in 0..<10_000 {
      budget.chargeStateChange()
      budget.claimed()
      #expect(!budget.isFlooded)
    }
  }
}
