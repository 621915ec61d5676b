import Dispatch
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// Several threads write body files, while another thread removes the temporary files of dead writers.
@Suite struct BodyFilesTests {
  @Test("a sweep does not remove a temporary file between its creation and its locking")
  func draftsOfTheLiving() throws {
    let files = BodyFiles(directory: try TemporaryDirectory.make("body-files"))
    // Whether the writers have ended.
    let isOver = Locked(false)
    let failures = Locked<[String]>([])
    let published = Locked<[String]>([])
    let sweepers = DispatchGroup()
    let queue = DispatchQueue.global()
    queue.async(group: sweepers) {
      while !isOver.withLock(\.self) {
        // The closure says of each published file that a row of the database names it. So only temporary
        // files can be orphans.
        if let orphans = try? files.orphans({ _ throws(DiskError) in true }) { files.sweep(orphans) }
      }
    }
    let writers = DispatchGroup()
    for writer in 0..<2 {
      queue.async(group: writers) {
        for number in 0..<2000 {
          do throws(DiskError) {
            let file = try files.write([UInt8(writer), UInt8(number & 255)])
            try files.publish(file)
            let name = file.name
            published.withLock { $0.append(name) }
          } catch {
            failures.withLock { $0.append("\(error)") }
          }
        }
      }
    }
    writers.wait()
    isOver.withLock { $0 = true }
    sweepers.wait()
    #expect(failures.withLock(\.self).prefix(3).isEmpty)
    let names = published.withLock(\.self)
    #expect(names.count == 4000)
    #expect(names.allSatisfy { files.read($0, length: 2) != nil })
    #expect(try files.orphans { _ throws(DiskError) in true }.isEmpty)
  }
}
