import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct DescriptorTests {
  /// The two ends of a pipe.
  private final class Pipe: Sendable {
    let reading: Int32
    let writing: Int32

    init() throws {
      var ends: [Int32] = [0, 0]
      try #require(pipe(&ends) == 0)
      (reading, writing) = (ends[0], ends[1])
    }

    deinit {
      close(reading)
      close(writing)
    }
  }

  @Test func whatIsWrittenIsRead() throws {
    let pipe = try Pipe()
    let output = DescriptorOutput(pipe.writing, target: "a pipe")
    try output.write("some text")
    #expect(try DescriptorInput(pipe.reading).read(upTo: 100) == Array("some text".utf8))
    #expect(!output.isTerminal)
    #expect(output.columns == nil)
  }

  @Test func moreThanAPipeHoldsIsWrittenWhole() async throws {
    let pipe = try Pipe()
    let text = [UInt8](repeating: 0x61, count: 1 << 20)
    async let written: Void = DescriptorOutput(pipe.writing, target: "a pipe").write(text)
    var read = 0
    while read < text.count { read += try DescriptorInput(pipe.reading).read(upTo: 65_536).count }
    try await written
    #expect(read == text.count)
  }

  @Test func readingStopsAfterTheLimit() throws {
    let path = try TemporaryDirectory.make("input") + "/file"
    try Files.write("0123456789", to: path)
    #expect(try DescriptorInput.readFile(path, upTo: 20).count == 10)
    #expect(try DescriptorInput.readFile(path, upTo: 4).count == 5)
    #expect(throws: InputError.refused(ENOENT)) { try DescriptorInput.readFile(path + "x", upTo: 4) }
    #expect(throws: InputError.refused(EISDIR)) { try DescriptorInput.readFile("/", upTo: 4) }
    #expect(try DescriptorInput.readFile("/dev/zero", upTo: 1000).count == 1001)
  }

  @Test func waitingForAReaderCanBeCancelled() async throws {
    let pipe = try Pipe()
    let task = Task {
      let endless = [UInt8](repeating: 0x61, count: 10 << 20)
      try DescriptorOutput(pipe.writing, target: "a pipe").write(endless)
    }
    task.cancel()
    await #expect(throws: OutputError(kind: .cancelled, target: "a pipe")) { try await task.value }
  }

  /// A report goes to a pipe although the run was stopped: the other pipe's cancelled writer has given up meanwhile.
  @Test func aPatientOutputWaitsForItsReaderAlthoughItsTaskIsCancelled() async throws {
    let (pipe, other) = (try Pipe(), try Pipe())
    let bytes = [UInt8](repeating: 0x61, count: 200_000)
    let patient = Task {
      try DescriptorOutput(pipe.writing, target: "a pipe", isPatient: true).write(bytes)
    }
    patient.cancel()
    let impatient = Task { try DescriptorOutput(other.writing, target: "another").write(bytes) }
    impatient.cancel()
    await #expect(throws: OutputError(kind: .cancelled, target: "another")) { try await impatient.value }
    var count = 0
    while count < bytes.count { count += try DescriptorInput(pipe.reading).read(upTo: 65_536).count }
    try await patient.value
    #expect(count == bytes.count)
  }

  @Test func waitingForAWriterCanBeCancelled() async throws {
    let pipe = try Pipe()
    let task = Task { try DescriptorInput(pipe.reading).read(upTo: 1) }
    task.cancel()
    await #expect(throws: InputError.cancelled) { try await task.value }
  }

  @Test func writingToAFullDeviceFails() throws {
    let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let error = #expect(throws: OutputError.self) {
      try DescriptorOutput(descriptor, target: "standard output").write("x")
    }
    #expect(
      error?.description
        == "cannot write to standard output: No space left on device; free some space or write elsewhere")
  }
}
