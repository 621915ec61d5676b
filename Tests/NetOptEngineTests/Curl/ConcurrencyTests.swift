import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Many concurrent exchanges, and large bodies. Each test runs in a separate process, so that the memory,
/// threads and descriptors of that process belong to the test alone.
@Suite struct ConcurrencyTests {
  @Test("1,000 requests, half of them cancelled, share one connection and leave no thread or descriptor")
  func thousandRequests() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      // The Swift runtime opens descriptors at the first use of clocks and tasks.
      try await Task.sleep(for: .milliseconds(1))
      try await TransportBench().end()
      let before = ProcessFootprint.now
      let bench = try await TransportBench()
      let addresses = origin.endpoints.map(\.address)
      let outcomes = await withTaskGroup(of: Result<NetOptResponse, NetOptError>.self) { group in
        for index in 0..<1000 {
          // The server delays its response to half of the requests, and the test cancels these requests.
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
          // The requests without a delay have ended. The others wait for their responses.
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

  @Test("a body that is not read stalls only its own stream, and takes bounded memory")
  func unreadBody() async throws {
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
      // For 5 s nobody reads the large body. Meanwhile other requests use the connection.
      let end = bench.loop.now() + .seconds(5)
      var others = 0
      while bench.loop.now() < end {
        let response = try await bench.execute(small, addresses)
        #expect(response.reused)
        #expect(try await response.body.collect(upTo: 100).count == 6)
        others += 1
      }
      // In MiB. libcurl keeps the bytes of the large body that the HTTP/2 window of the stream allows: 32
      // MiB. libcurl doubles a buffer that is full, so up to twice as much memory is allocated as resident.
      // With a sanitizer, `memoryBytes` is the allocated memory.
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

  @Test("bodies of 100 MB in both directions take less than 40 MiB over HTTP/2 and HTTP/1.1")
  func largeBodies() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      let bench = try await TransportBench()
      let addresses = origin.endpoints.map(\.address)
      // Downloads and uploads a body of this size, in bytes, over HTTP/2 and HTTP/1.1.
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
      // The first transfers allocate memory that stays allocated, also in a sanitizer. So the measurement
      // begins after them.
      try await transfer(10_000_000)
      let before = ProcessFootprint.now.memoryBytes
      try await transfer(100_000_000)
      let growth = ProcessFootprint.now.memoryBytes - before
      #expect(growth < 40 << 20, "it grew by \(growth >> 20) MiB")
      await bench.end()
    }
  }
}

/// A sequence that yields the same chunk `times` times.
private struct Repeated: AsyncSequence, Sendable {
  let chunk: [UInt8]
  let times: Int

  struct AsyncIterator: AsyncIteratorProtocol {
    let chunk: [UInt8]
    /// How many times the chunk is still to come.
    var rest: Int

    mutating func next() async -> [UInt8]? {
      guard rest > 0 else { return nil }
      rest -= 1
      return chunk
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunk: chunk, rest: times) }
}
