import FaultMatrix
import Testing

/// Tests the selection of the cells of the fault matrix, and the output of their results.
@Suite struct CellTests {
  @Test("a sample has the requested size, no duplicates, and every value of each dimension")
  func sample() {
    // With and without the faults for which the process needs its own network namespace.
    let right = Fault.all.filter { $0.knownViolation == nil }
    for faults in [right, right.filter { !$0.needsOwnNetwork }] {
      let cells = Cell.sample(40, of: faults)
      #expect(cells.count == 40)
      #expect(Set(cells.map(\.description)).count == 40)
      #expect(Set(cells.map(\.fault.name)).count == faults.count)
      #expect(Set(cells.map(\.traffic)).count == Traffic.allCases.count)
      #expect(Set(cells.map(\.concurrency)).count == Cell.concurrencies.count)
      #expect(Set(cells.map(\.version)).count == Cell.versions.count)
    }
  }

  @Test("a sample larger than the matrix contains every cell once")
  func sampleOfAll() {
    let cells = Cell.sample(10_000)
    let all = Cell.all(of: Fault.all.filter { $0.knownViolation == nil })
    #expect(Set(cells.map(\.description)) == Set(all.map(\.description)))
    #expect(cells.count == all.count)
  }

  @Test("the table replaces the text between the two marks, and needs both in order")
  func marks() {
    let text = "a\n\(MarkedText.begin)\nold\n\(MarkedText.end)\nz\n"
    #expect(MarkedText.replacing(text, with: "new") == "a\n\(MarkedText.begin)\nnew\n\(MarkedText.end)\nz\n")
    #expect(MarkedText.replacing("\(MarkedText.end)\n\(MarkedText.begin)", with: "new") == nil)
    #expect(MarkedText.replacing("a", with: "new") == nil)
  }

  @Test(
    "each cell is in exactly one share, and share sizes differ by at most one",
    arguments: [1, 2, 7, 10, 40], [0, 1, 9, 10, 630])
  func shares(count: Int, cells: Int) {
    let shares = (0..<count).map { SharedRun.indices(ofShare: $0, of: count, cells: cells) }
    #expect(shares.flatMap { $0 }.sorted() == Array(0..<cells))
    let sizes = shares.map(\.count)
    #expect((sizes.max() ?? 0) - (sizes.min() ?? 0) <= 1)
  }

  @Test("results are parsed from a process's output, each with its violations")
  func results() {
    let cells = Cell.sample(5)
    let results = cells.enumerated().map { number, cell in
      var verdict = CellVerdict()
      verdict.netopt.calls = 10 + number
      // The first cell has no violation, and each further cell has one more. The last cell has two of the
      // kind `late`, as many as the output shows of a kind.
      let kinds: [CellVerdict.Violation.Kind] = [.failed, .doubled, .late, .late, .late]
      verdict.violations = kinds.prefix(number).map {
        .init(kind: $0, text: "| call \(number)\nVIOLATION of a line")
      }
      return CellResult(cell, verdict)
    }
    #expect(results.map { $0.violations.count } == [0, 2, 4, 6, 7])
    let output =
      (["a remark", VerdictTable.head] + results.flatMap(\.lines) + ["5 cells, 4 with violations"])
      .joined(separator: "\n")
    #expect(CellResult.read(output + "\n") == results)
  }

  @Test("a log is parsed into processed and refused requests")
  func log() {
    let arrivals = Arrivals(log: "1 open -\n2 arrive a\n3 refuse b\n4 arrive a\nhalf a li")
    #expect(arrivals.processed == ["a": 2])
    #expect(arrivals.refused == ["b"])
  }
}
