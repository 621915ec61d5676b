import FaultMatrix
import Testing

/// Which cells there are, and where the table goes.
@Suite struct CellTests {
  @Test("a sample has as many cells as it should, none twice, and all of each dimension")
  func sample() {
    // With and without the faults that take a network of the process's own.
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

  @Test("a sample of more cells than there are is all of them")
  func sampleOfAll() {
    let cells = Cell.sample(10_000)
    let all = Cell.all(of: Fault.all.filter { $0.knownViolation == nil })
    #expect(Set(cells.map(\.description)) == Set(all.map(\.description)))
    #expect(cells.count == all.count)
  }

  @Test("the table takes the place of what is between the marks")
  func marks() {
    let text = "a\n\(MarkedText.begin)\nold\n\(MarkedText.end)\nz\n"
    #expect(MarkedText.replacing(text, with: "new") == "a\n\(MarkedText.begin)\nnew\n\(MarkedText.end)\nz\n")
    #expect(MarkedText.replacing("\(MarkedText.end)\n\(MarkedText.begin)", with: "new") == nil)
    #expect(MarkedText.replacing("a", with: "new") == nil)
  }

  @Test("each cell is in one share, and in no other", arguments: [1, 2, 7, 10, 40], [0, 1, 9, 10, 630])
  func shares(count: Int, cells: Int) {
    let shares = (0..<count).map { SharedRun.places(ofShare: $0, of: count, cells: cells) }
    #expect(shares.flatMap { $0 }.sorted() == Array(0..<cells))
    let sizes = shares.map(\.count)
    #expect((sizes.max() ?? 0) - (sizes.min() ?? 0) <= 1)
  }

  @Test("results are read from what a process printed, each with its violations")
  func results() {
    let cells = Cell.sample(5)
    let results = cells.enumerated().map { number, cell in
      var verdict = CellVerdict()
      verdict.netopt.calls = 10 + number
      // None, one, two, …: of the third kind more than is shown.
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

  @Test("a log says what was processed and what was refused")
  func log() {
    let arrivals = Arrivals(log: "1 open -\n2 arrive a\n3 refuse b\n4 arrive a\nhalf a li")
    #expect(arrivals.processed == ["a": 2])
    #expect(arrivals.refused == ["b"])
  }
}
