internal import Spool

extension JobRequest {
  /// What the arguments of a command ask for.
  /// - Throws: ``Defect`` for a value that its key refuses, or that would be two lines of a job.
  init(urls: [String], given: [(key: JobKey, text: String)]) throws(Defect) {
    self.init()
    for (key, text) in urls.map({ (JobKey.url, $0) }) + given {
      if text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) {
        throw Defect(line: nil, reason: "no value may contain a line break")
      }
      try set(key, text)
    }
  }

  /// The job's text, read as a worker reads it.
  /// - Throws: ``Defect`` that a worker would find.
  func readBack() throws(Defect) -> JobRequest {
    let parsed = Array(text.utf8).withUnsafeBytes { JobText($0) }
    if let defect = parsed.defect { throw defect }
    return parsed.request
  }
}
