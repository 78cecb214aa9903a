import Glibc
import TestSupport

/// What the first attempt of a job can meet.
extension Scenario {
  static let began = [
    Scenario(
      name: "fresh", setUp: { try $0.drop() },
      answer: { world, request, reply in
        try Version.current.serve(request, reply) { try world.awaitCheckpoint($0) }
      }),
    Scenario(
      name: "digests", digests: ["sha256": Version.sha256, "md5": Version.md5], permissions: 0o640,
      setUp: { try $0.drop("sha256: \(Version.sha256)", "digests: md5", "mode: 640") },
      answer: { world, request, reply in
        try Version.current.serve(request, reply) { try world.awaitCheckpoint($0) }
      }),
    Scenario(
      // The server states a digest, and so the job has one to compute.
      name: "stated digest", digests: ["sha256": Version.sha256], setUp: { try $0.drop() },
      answer: { world, request, reply in
        try Version.current.serve(request, reply, [Version.statedSHA256]) { try world.awaitCheckpoint($0) }
      }),
    Scenario(
      // Only an answer with the whole file states it: after a kill, the journal is what still does.
      name: "stated md5", digests: ["md5": Version.md5], setUp: { try $0.drop() },
      answer: { world, request, reply in
        let fields = request.rangeStart == nil ? [Version.statedMD5] : []
        try Version.current.serve(request, reply, fields) { try world.awaitCheckpoint($0) }
      }),
    Scenario(
      // The first answer states the digest of the bytes to come, and gives others.
      name: "stated mismatch", digests: ["sha256": Version.sha256], setUp: { try $0.drop() },
      answer: { world, request, reply in
        let stated = [Version.statedSHA256]
        if world.hasMark("all of the wrong bytes") { return try Version.current.serve(request, reply, stated) }
        try Version.previous.serve(request, reply, stated) { try world.awaitCheckpoint($0) }
        _ = world.isFirst("all of the wrong bytes")
      }),
    Scenario(
      // With the checkpoint the job goes into a copy, without what later lines supersede.
      name: "long journal", options: { _ in ["journal=1"] }, setUp: { try $0.drop() },
      answer: { world, request, reply in
        try Version.current.serve(request, reply) { try world.awaitCheckpoint($0) }
      }),
    Scenario(
      // Six pieces, in whatever order they come.
      name: "several connections", options: { _ in ["connections=3"] }, setUp: { try $0.drop() }),
    Scenario(
      name: "mismatch",
      setUp: { try $0.drop("crc32: \(Version.current.crc32)") },
      answer: { world, request, reply in
        if world.hasMark("all of the wrong bytes") { return try Version.current.serve(request, reply) }
        try Version.previous.serve(request, reply) { try world.awaitCheckpoint($0) }
        _ = world.isFirst("all of the wrong bytes")
      }),
    Scenario(
      name: "retry", setUp: { try $0.drop() },
      answer: { world, request, reply in
        if world.isFirst("503") { return try reply.respond("500 Internal Server Error", body: []) }
        try Version.current.serve(request, reply)
      }),
    Scenario(
      name: "wrong tail", setUp: { try $0.drop() },
      answer: { world, request, reply in
        if world.isFirst("wrong tail") { return try Version.current.serveWithWrongTail(request, reply) }
        try Version.current.serve(request, reply)
      }),
    Scenario(
      name: "wrong tail, several connections", options: { _ in ["connections=3"] }, setUp: { try $0.drop() },
      answer: { world, request, reply in
        if request.nth == 2, world.isFirst("wrong tail") {
          return try Version.current.serveWithWrongTail(request, reply)
        }
        try Version.current.serve(request, reply)
      }),
    Scenario(
      name: "give-up", jobs: [Job(output: "a.bin", end: .failed)], setUp: { try $0.drop() },
      answer: { _, _, reply in try reply.respond("404 Not Found", body: []) }),
    Scenario(
      // The worker gets a SIGTERM when the first half has come.
      name: "stopped", options: { $0.requests(for: "a.bin").isEmpty ? ["stop=data"] : [] }, setUp: { try $0.drop() },
      answer: { _, request, reply in
        try Version.current.serve(request, reply) { if request.nth == 1 { try $0.stall() } }
      }),
    Scenario(
      // As on a file system without RENAME_NOREPLACE: a move is a link and an unlink.
      name: "retry, moves by link", options: { _ in ["replace=unknown"] }, setUp: { try $0.drop() },
      answer: { world, request, reply in
        if world.isFirst("503") { return try reply.respond("500 Internal Server Error", body: []) }
        try Version.current.serve(request, reply)
      }),
    Scenario(
      name: "no jobs", jobs: [Job(output: "a.bin", end: .failed)], rejected: ["link", "link.record"],
      setUp: { world in
        try world.drop("colour: red")
        symlink("/etc/passwd", world.spool.path("new/link"))
      }),
    Scenario(
      // Dropped with ln: the file has another name outside.
      name: "linked",
      setUp: { world in
        try writeFile(world.outside("job"), Array(world.job([], output: "a.bin").utf8))
        link(world.outside("job"), world.spool.path("new/a"))
      }),
  ]
}

/// Where the output goes, and what stands there.
extension Scenario {
  static let placed = [
    Scenario(
      name: "overwrite", jobs: [Job(output: "a.bin", before: Version.previous.bytes)],
      setUp: { world in
        try writeFile(world.spool.path("files/a.bin"), Version.previous.bytes)
        try world.drop("overwrite: yes")
      }),
    Scenario(
      name: "existing output", jobs: [Job(output: "a.bin", before: Version.current.bytes)],
      setUp: { world in
        try writeFile(world.spool.path("files/a.bin"), Version.current.bytes)
        try world.drop("crc32: \(Version.current.crc32)", "size: \(Version.length)")
      }),
    Scenario(
      name: "nested directories", jobs: [Job(output: "sets/2026/a.bin")], permissions: 0o644,
      outputDirectories: ["files", "sets", "2026"],
      setUp: { try $0.drop("mode: 644", output: "sets/2026/a.bin") }),
    Scenario(
      name: "other file system", options: { ["directory=\($0.outputRoot ?? "")"] }, isOnOtherFileSystem: true,
      setUp: { try $0.drop() }),
    Scenario(
      name: "named root", isOnOtherFileSystem: true, permissions: 0o664,
      setUp: { world in
        mkdir(world.spool.path("roots"), 0o700)
        symlink(world.payloadRoot, world.spool.path("roots/other"))
        try world.drop("root: other", "mode: 664")
      }),
    Scenario(
      // There without RENAME_NOREPLACE as well: the copy gets its name by a link.
      name: "other file system, moves by link",
      options: { ["directory=\($0.outputRoot ?? "")", "replace=unknown"] }, isOnOtherFileSystem: true,
      setUp: { try $0.drop() }),
    Scenario(
      name: "overwrite on other file system", jobs: [Job(output: "a.bin", before: Version.previous.bytes)],
      options: { ["directory=\($0.outputRoot ?? "")"] }, isOnOtherFileSystem: true,
      setUp: { world in
        try writeFile("\(world.payloadRoot)/a.bin", Version.previous.bytes)
        try world.drop("overwrite: yes")
      }),
  ]
}

/// More than one job, more than one worker.
extension Scenario {
  static let crowded = [
    Scenario(
      // All are whole at the same moment, so that they are committed together.
      name: "batch", jobs: ["a.bin", "b.bin", "c.bin", "d.bin", "e.bin"].map { Job(output: $0) },
      stride: 7,
      setUp: { world in
        for name in ["a", "b", "c", "d", "e"] { try world.drop(output: "\(name).bin", as: name) }
      }),
    Scenario(
      name: "two workers", jobs: ["a.bin", "b.bin", "c.bin", "d.bin"].map { Job(output: $0) }, workers: 2,
      options: { _ in ["jobs=2"] },
      setUp: { world in
        for name in ["a", "b", "c", "d"] { try world.drop(output: "\(name).bin", as: name) }
      }),
    Scenario(
      // An older job of the same name waits with its data.
      name: "namesake", jobs: [Job(output: "a.bin"), Job(output: "b.bin")], isNamedByOutput: false,
      setUp: { world in
        try world.addHalf(of: .current)
        try world.drop(output: "b.bin")
        // So that its claim comes first, also when it is taken over.
        try setModificationTime(world.spool.path("new/a"), secondsFromNow: -300)
      }),
  ]
}
