import FoundationEssentials
import Glibc
import NetOpt
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// Request bodies from files, over connections to a loopback server.
@Suite struct FileBodyTests {
  private static func client() throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    return try NetOptClient(configuration)
  }

  /// Random bytes, from a generator that repeats them for the same seed.
  private static func bytes(_ count: Int, _ random: inout SplitMix64) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  /// A loss of the connection that the client may repair: before the body, or after it.
  private struct Lost: Error {}

  @Test(
    "a PUT of a file whose connection is lost is sent again, and the server reads the file's bytes each time",
    .timeLimit(.minutes(1)), arguments: 1...24 as ClosedRange<UInt64>)
  func sentAgain(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let edges = [0, 1, 128 << 10, (128 << 10) + 1, 256 << 10, 700_000]
    let content = Self.bytes(
      random.below(2) == 0 ? edges[Int(random.below(6))] : Int(random.below(1_000_000)), &random)
    let path = try TemporaryDirectory.make("file") + "/body"
    try TextFile.write(content, to: path)
    // The connections that the server drops, and whether it has read the body before.
    let drops = Locked((0..<random.below(3)).map { _ in random.below(2) == 0 })
    let isPooled = random.below(2) == 0
    let bodies = Locked<[[UInt8]]>([])
    let server = try LoopbackServer(
      .raw { exchange in
        guard exchange.request.method == .put else { return try exchange.respond(200) }
        let drop = drops.withLock { $0.popLast() }
        if drop == false { throw Lost() }
        let body = try exchange.readBody()
        bodies.withLock { $0.append(body) }
        if drop == true { throw Lost() }
        try exchange.respond(200)
      })
    defer { server.stop() }
    let client = try Self.client()
    let url = "http://\(server.endpoint)/"
    if isPooled { _ = try await client.execute(NetOptRequest(.get, url)) }
    let request = try NetOptRequest(.put, url, body: .file(path, contentType: "text/x"))
    #expect(request.body.length == Int64(content.count))
    let response = try await client.execute(request)
    #expect(response.status == 200)
    let received = bodies.withLock { $0 }
    #expect(received.last == content)
    // The server may find the end of the connection before the last byte; what it has read is the beginning.
    for body in received { #expect(content.starts(with: body)) }
    await client.shutdown()
  }

  @Test(
    "a file that changes before or while it is sent fails the request, and no server reads a whole body",
    arguments: [
      "append before", "append meanwhile", "truncate before", "truncate meanwhile", "overwrite before",
      "overwrite meanwhile", "replace before", "remove before",
    ])
  func changed(_ change: String) async throws {
    // More than the buffers of client and kernel hold.
    let size = 16 << 20
    let path = try TemporaryDirectory.make("changed") + "/body"
    try TextFile.write([UInt8](repeating: 1, count: size), to: path)
    // Two changes within a tick of the kernel's clock have the same time.
    var times = [timespec(tv_sec: 1_000_000_000, tv_nsec: 0), timespec(tv_sec: 1_000_000_000, tv_nsec: 0)]
    try #require(utimensat(AT_FDCWD, path, &times, 0) == 0)
    let apply: @Sendable () throws -> Void = {
      switch change.split(separator: " ")[0] {
      case "append": try Self.write([9], to: path, at: off_t(size))
      case "truncate": try #require(truncate(path, off_t(size - 1)) == 0)
      case "overwrite": try Self.write([9], to: path, at: off_t(size - 1))
      case "replace":
        try TextFile.write([UInt8](repeating: 1, count: size), to: path + ".new")
        try #require(rename(path + ".new", path) == 0)
      default: try #require(unlink(path) == 0)
      }
    }
    let counts = Locked<[Int]>([])
    let server = try LoopbackServer(
      .raw { exchange in
        if change.hasSuffix("meanwhile") { try apply() }
        let body = try exchange.readBody()
        counts.withLock { $0.append(body.count) }
        try exchange.respond(200)
      })
    let client = try Self.client()
    let request = try NetOptRequest(.put, "http://\(server.endpoint)/", body: .file(path))
    if change.hasSuffix("before") { try apply() }
    let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
    #expect(error?.code == .unreadableFile)
    #expect(error?.message.contains(path) == true)
    await client.shutdown()
    server.stop()
    #expect(counts.withLock { $0 }.allSatisfy { $0 < size })
  }

  private static func write(_ bytes: [UInt8], to path: String, at offset: off_t) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, bytes, bytes.count, offset) == bytes.count)
  }

  @Test("a path that is no readable regular file is refused when the body is made")
  func refused() throws {
    let folder = try TemporaryDirectory.make("refused")
    try #require(mkfifo(folder + "/pipe", 0o600) == 0)
    try TextFile.write("a", to: folder + "/file")
    for path in [
      folder, folder + "/missing", folder + "/pipe", "/dev/null", "", folder + "/file\0.txt",
    ] {
      let error = #expect(throws: NetOptError.self) { try RequestBody.file(path) }
      #expect(error?.code == .unreadableFile)
    }
  }

  @Test("a file that was empty, or whose size the system does not know, is not sent as an empty body")
  func emptyFiles() async throws {
    let path = try TemporaryDirectory.make("empty") + "/body"
    try TextFile.write("", to: path)
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    let client = try Self.client()
    let url = "http://\(server.endpoint)/"
    let empty = try NetOptRequest(.put, url, body: .file(path))
    #expect(try await client.execute(empty).status == 200)
    try TextFile.write("late", to: path)
    for request in [empty, try NetOptRequest(.put, url, body: .file("/proc/self/status"))] {
      let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
      #expect(error?.code == .unreadableFile)
    }
    #expect(server.requests.count == 1)
    await client.shutdown()
  }

  @Test("a file body leaves no descriptor open", arguments: [true, false])
  func descriptors(isAnswered: Bool) async throws {
    let path = try TemporaryDirectory.make("open") + "/body"
    try TextFile.write([UInt8](repeating: 1, count: 4 << 20), to: path)
    let server = try LoopbackServer(
      .raw { exchange in
        if isAnswered { _ = try exchange.readBody() }
        try exchange.respond(200, ["Connection": "close"])
        throw Lost()
      })
    defer { server.stop() }
    let client = try Self.client()
    let request = try NetOptRequest(.put, "http://\(server.endpoint)/", body: .file(path))
    _ = try? await client.execute(request)
    await client.shutdown()
    try await wait(for: "the file to be closed") {
      let folder = "/proc/self/fd"
      let open = try FileManager.default.contentsOfDirectory(atPath: folder)
      return !open.contains { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")) == path
      }
    }
  }
}
