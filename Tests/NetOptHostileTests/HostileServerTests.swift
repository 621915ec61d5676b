import NetOptTestSupport
import Testing

/// Servers that misbehave at the level of HTTP/1.1 bytes, HTTP/2 frames and TLS records. After each broken answer the next
/// request gets its own right one, and nothing broken is stored.
@Suite struct HostileServerTests {
  @Test("status lines", arguments: HostileRun.Mode.allCases, Selection.chosen(StatusLineCases.all))
  func statusLines(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("field lines", arguments: HostileRun.Mode.allCases, Selection.chosen(FieldCases.all))
  func fieldLines(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("lengths, chunks and trailers", arguments: HostileRun.Mode.allCases, Selection.chosen(BodyCases.all))
  func bodies(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("content codings", arguments: HostileRun.Mode.allCases, Selection.chosen(CodingCases.all))
  func codings(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("connections that end", arguments: HostileRun.Mode.allCases, Selection.chosen(EndCases.all))
  func ends(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("bytes behind an answer", arguments: HostileRun.Mode.allCases, Selection.chosen(LeftoverCases.all))
  func leftovers(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("answers without end", arguments: HostileRun.Mode.allCases, Selection.chosen(FloodCases.all))
  func floods(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("fields of HTTP/2", arguments: HostileRun.Mode.allCases, Selection.chosen(H2FieldCases.all))
  func h2Fields(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("frames of HTTP/2", arguments: HostileRun.Mode.allCases, Selection.chosen(H2FrameCases.all))
  func h2Frames(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("HTTP/2 answers that end", arguments: HostileRun.Mode.allCases, Selection.chosen(H2EndCases.all))
  func h2Ends(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("HTTP/2 frames without end", arguments: HostileRun.Mode.allCases, Selection.chosen(H2FloodCases.all))
  func h2Floods(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("TLS handshakes and records", arguments: HostileRun.Mode.allCases, Selection.chosen(RecordCases.all))
  func records(_ mode: HostileRun.Mode, _ hostile: HostileCase) async throws {
    try await perform(hostile, mode)
  }

  @Test("every scenario of the server has its verdict")
  func everyScenarioHasItsVerdict() async throws {
    let names = Self.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(try await Set(HostileServer.scenarios()) == Set(names))
  }

  private static let all: [HostileCase] = .together(
    StatusLineCases.all, FieldCases.all, BodyCases.all, CodingCases.all, EndCases.all, LeftoverCases.all,
    FloodCases.all, H2FieldCases.all, H2FrameCases.all, H2EndCases.all, H2FloodCases.all, RecordCases.all)

  private func perform(_ hostile: HostileCase, _ mode: HostileRun.Mode) async throws {
    // A connection in the pool would have begun as it should.
    if hostile.isOfFirstConnection, mode == .pooled { return }
    try await HostileRun(hostile, mode).perform()
  }
}
