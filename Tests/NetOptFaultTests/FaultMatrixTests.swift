import Glibc
import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import Testing

/// The cells with one request at once of a sample of the matrix, in a process of its own, so that it may have a network of its own.
@Suite struct FaultMatrixTests {
  @Test(
    "in no cell does netopt fail what curl completes, double a request, hide a cause or outlive a deadline")
  func cells() async throws {
    let directory = try TemporaryDirectory.make("faults")
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = FileBytes.folder(of: tests) + "/netopt-faults"
    // `FAULT_CELLS=,` runs those with 50 requests at once as well.
    let only = getenv("FAULT_CELLS").map { String(cString: $0) } ?? "1 at once"
    let matrix = try ChildProcess(program, ["--sample", "40", "--only", only, "--short"], in: directory)
    try await wait(for: "the cells to be run", within: .seconds(600)) { matrix.exitStatus() != nil }
    let output = TextFile.read(matrix.output)
    #expect(matrix.exitStatus() == 0, "\(output)")
    // Otherwise nothing was tested.
    #expect(output.contains(" cells, 0 with violations") && !output.contains("\n0 cells"), "\(output)")
  }
}
