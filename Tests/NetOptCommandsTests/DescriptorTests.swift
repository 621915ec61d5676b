import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct DescriptorTests {
  /// The descriptors of the two ends of a pipe, which are closed with this object.
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

  @Test("an input reads from a pipe the bytes that an output wrote, and a pipe is no terminal")
  func writeAndRead() throws {
    let pipe = try Pipe()
    let output = DescriptorOutput(pipe.writing, target: "a pipe")
    try output.write("some text")
    #expect(try DescriptorInput(pipe.reading).read(upTo: 100) == Array("some text".utf8))
    #expect(!output.isTerminal)
    #expect(output.columns == nil)
  }

  @Test("a write of more bytes than a pipe holds completes when a reader takes them")
  func longWrite() async throws {
    let pipe = try Pipe()
    let text = [UInt8](repeating: 0x61, count: 1 << 20)
    async let written: Void = DescriptorOutput(pipe.writing, target: "a pipe").write(text)
    var read = 0
    while read < text.count { read += try DescriptorInput(pipe.reading).read(upTo: 65_536).count }
    try await written
    #expect(read == text.count)
  }

  @Test("readFile reads at most 1 byte more than the limit and fails with the system's error")
  func readLimit() throws {
    let path = try TemporaryDirectory.make("input") + "/file"
    try Files.write("0123456789", to: path)
    #expect(try DescriptorInput.readFile(path, upTo: 20).count == 10)
    #expect(try DescriptorInput.readFile(path, upTo: 4).count == 5)
    #expect(throws: InputError.refused(ENOENT)) { try DescriptorInput.readFile(path + "x", upTo: 4) }
    #expect(throws: InputError.refused(EISDIR)) { try DescriptorInput.readFile("/", upTo: 4) }
    #expect(try DescriptorInput.readFile("/dev/zero", upTo: 1000).count == 1001)
  }

  @Test("cancelling the task ends a write that waits for a reader")
  func cancelledWrite() async throws {
    let pipe = try Pipe()
    let task = Task {
      let endless = [UInt8](repeating: 0x61, count: 10 << 20)
      try DescriptorOutput(pipe.writing, target: "a pipe").write(endless)
    }
    task.cancel()
    await #expect(throws: OutputError(kind: .cancelled, target: "a pipe")) { try await task.value }
  }

  /// A patient output has `ignoresCancellation: true`. Both tasks write more bytes than a pipe holds and
  /// are cancelled. The write of the impatient output then fails. The patient output writes all bytes once
  /// a reader takes them.
  @Test("a patient output waits for its reader even after its task was cancelled")
  func patientOutput() async throws {
    let (pipe, other) = (try Pipe(), try Pipe())
    let bytes = [UInt8](repeating: 0x61, count: 200_000)
    let patient = Task {
      try DescriptorOutput(pipe.writing, target: "a pipe", ignoresCancellation: true).write(bytes)
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

  @Test("cancelling the task ends a read that waits for a writer")
  func cancelledRead() async throws {
    let pipe = try Pipe()
    let task = Task { try DescriptorInput(pipe.reading).read(upTo: 1) }
    task.cancel()
    await #expect(throws: InputError.cancelled) { try await task.value }
  }

  @Test("a write to a full device fails with the system's message")
  func fullDevice() throws {
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
