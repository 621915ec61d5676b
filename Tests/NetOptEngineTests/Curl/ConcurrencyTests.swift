import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Many exchanges at once, and large ones. Each test has a process of its own, whose memory, threads and descriptors
/// are then nobody else's.
@Suite struct ConcurrencyTests {
  @Test func aThousandRequestsShareOneConnectionAndNothingIsLeft() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      // The first use of clocks and tasks opens descriptors of the runtime's own.
      try await Task.sleep(for: .milliseconds(1))
      try await TransportBench().end()
      let before = ProcessFootprint.now
      let bench = try await TransportBench()
      let addresses = origin.endpoints.map(\.address)
      let outcomes = await withTaskGroup(of: Result<NetOptResponse, NetOptError>.self) { group in
        for index in 0..<1000 {
          // Half of them are asked to wait at the server, and are cancelled there.
          let target = index % 2 == 0 ? "/" : "/slow?s=60"
          group.addTask {
            do throws(NetOptError) {
              let request = try NetOptRequest(.get, "https://api.test:\(origin.port)\(target)")
              return .success(try await bench.execute(request, addresses))
            } catch { return .failure(error) }
          }
        }
        var outcomes: [Result<NetOptResponse, NetOptError>] = []
        for await outcome in group {
          outcomes.append(outcome)
          if outcomes.count == 500 { group.cancelAll() }
        }
        return outcomes
      }
      #expect(outcomes.count { (try? $0.get())?.status == 200 } == 500)
      let cancelled = outcomes.count {
        if case .failure(let error) = $0 { error.code == .cancelled } else { false }
      }
      #expect(cancelled == 500)
      let connections = Set(try await origin.waitForLog(500) { $0.status == 200 }.map(\.connection))
      #expect(connections.count == 1)
      await bench.end()
      try await wait(for: "descriptors and threads to be as before") {
        let now = ProcessFootprint.now
        return now.descriptors == before.descriptors && !now.threadNames.contains("netopt-loop")
      }
    }
  }

  @Test func aConsumerThatDoesNotReadHoldsBackItsTransferAlone() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      let bench = try await TransportBench()
      let addresses = origin.endpoints.map(\.address)
      let small = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
      _ = try await bench.execute(small, addresses).body.collect(upTo: 100)
      let before = ProcessFootprint.now.memoryBytes
      let large = try await bench.execute(
        try NetOptRequest(.get, "https://api.test:\(origin.port)/bytes/100000000"), addresses)
      // Five seconds in which nobody reads, and the connection's other streams are used.
      let end = bench.loop.now() + .seconds(5)
      var others = 0
      while bench.loop.now() < end {
        let response = try await bench.execute(small, addresses)
        #expect(response.reused)
        #expect(try await response.body.collect(upTo: 100).count == 6)
        others += 1
      }
      // libcurl holds as much as the stream's window lets through: 32 MiB. Its buffers double when they are full. A
      // sanitizer counts what is allocated, which is then up to twice what is resident.
      let bound = Sanitizer.isOn ? 72 : 40
      let growth = ProcessFootprint.now.memoryBytes - before
      #expect(growth < bound << 20, "it grew by \(growth >> 20) MiB")
      #expect(others > 100)
      var received = 0
      for try await chunk in large.body { received += chunk.count }
      #expect(received == 100_000_000)
      #expect(try await origin.waitForLog(2) { $0.connection == 1 }.count > 1)
      await bench.end()
    }
  }

  @Test func aHundredMegabytesGoBothWaysInConstantMemory() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      let bench = try await TransportBench()
      let addresses = origin.endpoints.map(\.address)
      // Both ways, over both versions.
      func transfer(_ size: Int) async throws {
        for version in [RequestOptions.Version.automatic, .http1] {
          var get = try NetOptRequest(.get, "https://api.test:\(origin.port)/bytes/\(size)")
          get.options.version = version
          var received = 0
          for try await chunk in try await bench.execute(get, addresses).body { received += chunk.count }
          #expect(received == size)
          let chunks = Repeated(chunk: [UInt8](repeating: 1, count: 100_000), times: size / 100_000)
          var put = try NetOptRequest(.put, "https://api.test:\(origin.port)/upload", body: .stream(chunks))
          put.options.version = version
          let answer = try await bench.execute(put, addresses).body.collect(upTo: 100)
          #expect(String(decoding: answer, as: UTF8.self) == "\(size)\n")
        }
      }
      // What is used once is there from here on, be it the sanitizer's own.
      try await transfer(10_000_000)
      let before = ProcessFootprint.now.memoryBytes
      try await transfer(100_000_000)
      let growth = ProcessFootprint.now.memoryBytes - before
      #expect(growth < 40 << 20, "it grew by \(growth >> 20) MiB")
      await bench.end()
    }
  }
}

/// One chunk, again and again.
private struct Repeated: AsyncSequence, Sendable {
  let chunk: [UInt8]
  let times: Int

  struct AsyncIterator: AsyncIteratorProtocol {
    let chunk: [UInt8]
    var rest: Int

    mutating func next() async -> [UInt8]? {
      guard rest > 0 else { return nil }
      rest -= 1
      return chunk
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunk: chunk, rest: times) }
}
