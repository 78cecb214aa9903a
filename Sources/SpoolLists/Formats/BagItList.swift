internal import Spool

/// fetch.txt of a BagIt bag, with the digests of the manifest beside it.
struct BagItList: LineFormat {
  let manifest: BagManifest?

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    if line.content.isEmpty { return nil }
    guard let item = BagItLine(line.text[...]) else {
      throw Defect(line: line.number, reason: "must be a URL, a length or `-`, and a path, as in a bag's fetch.txt")
    }
    var job = ListedJob(line: line.number)
    try job.request.add(url: item.url, line: line.number)
    if item.size != "-" { try job.request.set(.size, String(item.size), line: line.number) }
    guard item.path.begins(with: "data/") else {
      throw Defect(line: line.number, reason: "a path that is not below data/: a bag fetches only its payload")
    }
    try job.request.place(at: item.path, line: line.number)
    guard let manifest else { return job }
    guard let digest = try manifest.digest(of: item.path) else {
      throw Defect(line: line.number, reason: "`\(escaped(item.path))` is not in \(manifest.name)")
    }
    try job.request.declare(digest, line: line.number)
    return job
  }

  mutating func finish() -> ListedJob? { nil }
}
