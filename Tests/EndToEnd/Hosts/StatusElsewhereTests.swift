import Glibc
import TestSupport
import Testing

/// `status` in another pod, or on a host whose clock is ten minutes off.
@Suite struct StatusElsewhereTests {
  private enum Place: CaseIterable { case pod, ahead, behind }

  private func status(_ mount: BindMount, _ place: Place) async throws -> String {
    let result: CommandResult
    switch place {
    case .pod: result = try await spoolrun(["status", mount.directoryPath], prefix: mount.pod("pod-2"))
    case .ahead, .behind:
      result = try await run(
        [
          "/usr/bin/faketime", "-m", "-f", place == .ahead ? "+10m" : "-10m", productPath("spoolrun"), "status",
          mount.path,
        ], environment: testEnvironment.merging(["NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"]) { $1 })
    }
    return result.output
  }

  @Test(.enabled("needs bindfs and faketime") { try await Need.areMet(.bindfs, .program("faketime")) })
  func itTellsTheLivingFromTheDead() async throws {
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let (_, server, worker, _) = try await startHalfway(
      "# complete\n", in: spool, at: mount.directoryPath, ["--lease", "5s"], prefix: mount.pod("pod-1"))
    defer { withExtendedLifetime(server) { worker.send(signal: SIGKILL) } }
    for place in Place.allCases {
      var text = try await status(mount, place)
      // A worker that stands still for its lease is silent, until it goes on.
      for _ in 1...4 where !text.hasPrefix("1 running\n") || text.contains("silent") {
        try await Task.sleep(for: .seconds(6))
        text = try await status(mount, place)
      }
      #expect(text.hasPrefix("1 running\n") && !text.contains("silent"), "\(place): \(text)")
    }
    try await worker.stop(SIGKILL)
    for place in Place.allCases {
      let deadline = ContinuousClock.now + untilItHangs
      while try await !status(mount, place).hasPrefix("1 interrupted\n") {
        try #require(ContinuousClock.now < deadline, "\(place)")
        try await Task.sleep(for: .milliseconds(200))
      }
    }
    #expect(spool.names("tmp") == [])
  }
}
