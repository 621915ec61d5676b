import NetOptTestSupport
import TestTools
import Testing

/// Servers that misbehave at the level of HTTP/1.1 bytes, HTTP/2 frames and TLS records. After each broken answer the next
/// request gets its own right one, and nothing broken is stored.
@Suite struct HostileServerTests {
  @Test("status lines")
  func statusLines() async throws {
    try await HostileGroup.perform(StatusLineCases.all)
  }

  @Test("field lines")
  func fieldLines() async throws {
    try await HostileGroup.perform(FieldCases.all)
  }

  @Test("lengths, chunks and trailers")
  func bodies() async throws {
    try await HostileGroup.perform(BodyCases.all)
  }

  @Test("content codings")
  func codings() async throws {
    try await HostileGroup.perform(CodingCases.all)
  }

  @Test("connections that end")
  func ends() async throws {
    try await HostileGroup.perform(EndCases.all)
  }

  @Test("bytes behind an answer")
  func leftovers() async throws {
    try await HostileGroup.perform(LeftoverCases.all)
  }

  @Test("answers without end")
  func floods() async throws {
    try await HostileGroup.perform(FloodCases.all)
  }

  @Test("fields of HTTP/2")
  func h2Fields() async throws {
    try await HostileGroup.perform(H2FieldCases.all)
  }

  @Test("frames of HTTP/2")
  func h2Frames() async throws {
    try await HostileGroup.perform(H2FrameCases.all)
  }

  @Test("lengths of HTTP/2")
  func h2Lengths() async throws {
    try await HostileGroup.perform(H2LengthCases.all)
  }

  @Test("HTTP/2 answers that end")
  func h2Ends() async throws {
    try await HostileGroup.perform(H2EndCases.all)
  }

  @Test("HTTP/2 frames without end")
  func h2Floods() async throws {
    try await HostileGroup.perform(H2FloodCases.all)
  }

  @Test("TLS handshakes and records")
  func records() async throws {
    try await HostileGroup.perform(RecordCases.all)
  }

  @Test("every scenario of the server has its verdict")
  func everyScenarioHasItsVerdict() async throws {
    let names = Self.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(try await Set(HostileServer.scenarios()) == Set(names))
  }

  private static let all: [HostileCase] = .together(
    StatusLineCases.all, FieldCases.all, BodyCases.all, CodingCases.all, EndCases.all, LeftoverCases.all,
    FloodCases.all, H2FieldCases.all, H2FrameCases.all, H2LengthCases.all, H2EndCases.all, H2FloodCases.all,
    RecordCases.all, TogetherTests.cases, UnsentRequestsTests.cases, RefusalTests.cases, TunnelTests.cases)
}
