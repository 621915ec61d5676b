import FoundationEssentials
import Glibc
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCore

/// Bodies that `NetOptResponse.save` writes to files.
@Suite struct SavedBodyTests {
  private static func response(_ source: Chunks, status: Int = 200, length: Int?) throws -> NetOptResponse {
    var headers: HeaderFields = [:]
    headers["Content-Length"] = length.map(String.init)
    return NetOptResponse(
      url: try HTTPURL("https://a.test/"), status: status, headers: headers, body: ResponseBody(source))
  }

  private static func content(_ path: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path).map { Array($0) }
  }

  @Test(
    "the file is the whole body or what it was before, and nothing else is left",
    arguments: 1...60 as ClosedRange<UInt64>)
  func allOrNothing(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let folder = try TemporaryDirectory.make("saved")
    let path = folder + "/file"
    let before: [UInt8]? = random.below(2) == 0 ? [1, 2, 3] : nil
    if let before { try TextFile.write(before, to: path) }
    let chunks = (0..<random.below(12)).map { _ in
      (0..<Int(random.below(70_000))).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }
    let body = chunks.flatMap { $0 }
    let fails = random.below(3) == 0
    let failure = NetOptError(.receiveFailed, phase: .receive, "the connection ended")
    let length = random.below(2) == 0 ? body.count : nil
    let response = try Self.response(Chunks(chunks, failure: fails ? failure : nil), length: length)
    var steps: [(Int64, Int64?)] = []
    if fails {
      let error = await #expect(throws: NetOptError.self) {
        try await response.save(to: path) { steps.append(($0, $1)) }
      }
      #expect(error?.code == .receiveFailed)
      #expect(Self.content(path) == before)
    } else {
      let count = try await response.save(to: path) { steps.append(($0, $1)) }
      #expect(count == Int64(body.count))
      #expect(Self.content(path) == body)
    }
    #expect(steps.map(\.0) == chunks.indices.map { Int64(chunks[...$0].reduce(0) { $0 + $1.count }) })
    #expect(steps.allSatisfy { $0.1 == length.map(Int64.init) })
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(names == (fails && before == nil ? [] : ["file"]))
  }

  @Test("a status other than 2xx is an error with the body, and the file stays")
  func otherStatus() async throws {
    let path = try TemporaryDirectory.make("status") + "/file"
    try TextFile.write("old", to: path)
    let response = try Self.response(Chunks([Array("no".utf8)]), status: 404, length: 2)
    let error = await #expect(throws: NetOptError.self) { try await response.save(to: path) }
    #expect(error?.code == .unexpectedStatus && error?.responseBody == Array("no".utf8))
    #expect(TextFile.read(path) == "old")
  }

  @Test("a folder that does not exist is an error that names the path")
  func missingFolder() async throws {
    let path = try TemporaryDirectory.make("missing") + "/folder/file"
    let error = await #expect(throws: NetOptError.self) {
      try await Self.response(Chunks([[1]]), length: nil).save(to: path)
    }
    #expect(error?.code == .unwritableFile && error?.message.contains(path) == true)
  }

  @Test("a directory, a pipe and a path with a NUL are refused and stay")
  func specialFiles() async throws {
    let folder = try TemporaryDirectory.make("special")
    try #require(mkfifo(folder + "/pipe", 0o600) == 0)
    try TextFile.write("old", to: folder + "/file")
    for path in [folder, folder + "/pipe", folder + "/file\0.txt"] {
      let error = await #expect(throws: NetOptError.self) {
        try await Self.response(Chunks([[1]]), length: 1).save(to: path)
      }
      #expect(error?.code == .unwritableFile)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["file", "pipe"])
    #expect(TextFile.read(folder + "/file") == "old")
    var status = stat()
    #expect(stat(folder + "/pipe", &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test("the file behind a symbolic link is replaced, and keeps its permissions")
  func link() async throws {
    let folder = try TemporaryDirectory.make("link")
    try TextFile.write("old", to: folder + "/target")
    try #require(chmod(folder + "/target", 0o640) == 0)
    try #require(symlink("target", folder + "/link") == 0)
    try await Self.response(Chunks([Array("new".utf8)]), length: 3).save(to: folder + "/link")
    #expect(TextFile.read(folder + "/target") == "new")
    var status = stat()
    #expect(lstat(folder + "/link", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    #expect(stat(folder + "/target", &status) == 0 && status.st_mode & 0o777 == 0o640)
  }
}
