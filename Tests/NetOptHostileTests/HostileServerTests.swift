import NetOptTestSupport
import TestTools
import Testing

/// Tests of the client with a server that misbehaves at the level of HTTP/1.1 bytes, HTTP/2 frames and TLS
/// records (docs/hostile.md). After each broken response, the next request must get its own right response.
/// The cache must store nothing that is broken.
@Suite struct HostileServerTests {
  @Test("the client handles odd status lines")
  func statusLines() async throws {
    try await HostileGroup.perform(StatusLineCases.all)
  }

  @Test("the client handles odd field lines")
  func fieldLines() async throws {
    try await HostileGroup.perform(FieldCases.all)
  }

  @Test("the client handles odd lengths, chunks and trailers")
  func bodies() async throws {
    try await HostileGroup.perform(BodyCases.all)
  }

  @Test("the client handles odd content codings")
  func codings() async throws {
    try await HostileGroup.perform(CodingCases.all)
  }

  @Test("the client handles connections that end early")
  func ends() async throws {
    try await HostileGroup.perform(EndCases.all)
  }

  @Test("the client handles bytes after a response")
  func leftovers() async throws {
    try await HostileGroup.perform(LeftoverCases.all)
  }

  @Test("the client handles endless responses")
  func floods() async throws {
    try await HostileGroup.perform(FloodCases.all)
  }

  @Test("the client handles odd HTTP/2 fields")
  func h2Fields() async throws {
    try await HostileGroup.perform(H2FieldCases.all)
  }

  @Test("the client handles odd HTTP/2 frames")
  func h2Frames() async throws {
    try await HostileGroup.perform(H2FrameCases.all)
  }

  @Test("the client handles odd HTTP/2 lengths")
  func h2Lengths() async throws {
    try await HostileGroup.perform(H2LengthCases.all)
  }

  @Test("the client handles HTTP/2 responses that end early")
  func h2Ends() async throws {
    try await HostileGroup.perform(H2EndCases.all)
  }

  @Test("the client handles endless HTTP/2 frames")
  func h2Floods() async throws {
    try await HostileGroup.perform(H2FloodCases.all)
  }

  @Test("the client handles odd TLS handshakes and records")
  func records() async throws {
    try await HostileGroup.perform(RecordCases.all)
  }

  @Test("each scenario of the server has exactly one expected verdict")
  func scenariosHaveVerdicts() async throws {
    let names = Self.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(try await Set(HostileServer.scenarios()) == Set(names))
  }

  /// The cases of all suites.
  private static let all: [HostileCase] = .together(
    StatusLineCases.all, FieldCases.all, BodyCases.all, CodingCases.all, EndCases.all, LeftoverCases.all,
    FloodCases.all, H2FieldCases.all, H2FrameCases.all, H2LengthCases.all, H2EndCases.all, H2FloodCases.all,
    RecordCases.all, TogetherTests.cases, UnsentRequestsTests.cases, RefusalTests.cases, TunnelTests.cases,
    SplitUploadTests.cases, FullSocketTests.cases, ForgottenRestTests.cases)
}
