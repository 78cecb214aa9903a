extension JobSearch {
  /// The finished job whose receipt names this payload. If there are very many receipts, only some are read.
  /// - Parameter output: the path below the output root.
  /// - Parameter root: the output root, as in ``Journal/Receipt/directory``.
  /// - Parameter job: a job with the same output, whose name is likely to be similar.
  package func publisher(of output: String, in root: String?, like job: JobName) throws(SpoolError) -> FoundJob? {
    func isPublisher(_ text: JobText) -> Bool {
      text.journal.publication.receipt?.place == [output.exact, root?.exact]
    }
    let stem = job.fileName.numbering?.stem ?? job.fileName
    for name in [stem, job.fileName, FileName(OutputPath(output)?.name ?? "")] where name.isEntry && !name.isIgnored {
      if let found = try read(.done, name), isPublisher(found.text) { return found }
    }
    return try firstJob(in: [.done], limit: Self.mostPublishers, where: { isPublisher($0.text) })
  }

  /// What the receipts in `done` say of these outputs.
  /// - Parameter root: the output root, as in ``Journal/Receipt/directory``.
  /// - Parameter outputs: paths below it.
  /// - Returns: by output, each URL that its job asked for, its bytes, and when it was done.
  package func published(in root: String?, named outputs: Set<ExactText>) throws(SpoolError)
    -> [ExactText: [(url: String, size: UInt64, time: Timestamp?)]]
  {
    var found: [ExactText: [(url: String, size: UInt64, time: Timestamp?)]] = [:]
    try forEachJob(in: [.done]) { text in
      guard let receipt = text.journal.publication.receipt, receipt.directory?.exact == root?.exact,
        outputs.contains(receipt.output.exact), let size = text.journal.publication.verified?.size
      else { return }
      let time = text.journal.publication.receiptTime
      found[receipt.output.exact, default: []] += text.request.urls.map { ($0.text, size, time) }
    }
    return found
  }

  /// The jobs that were given up, or wait after a failure, by the rest of their names, with the links of their URLs.
  /// - Parameter prefix: what their names begin with.
  package func stuckJobs(below prefix: [UInt8]) throws(SpoolError) -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for directory in [Directory.failed, .partial] {
      let stream = try spool.stream(directory)
      while let name = try stream.next() {
        guard name.bytes.starts(with: prefix), !name.isData, let text = try read(directory, name)?.text,
          directory == .failed || text.journal.attempts.lastFailure != nil
        else { continue }
        let key = String(decoding: name.bytes.dropFirst(prefix.count), as: UTF8.self)
        found[key] = Set(text.request.urls.map { FeedEntry.link($0.text) })
      }
    }
    return found
  }

  /// The job that has published this payload, and has not delivered it. If a directory has very many jobs, only some of
  /// them are read.
  /// - Parameter output: the path below the output root.
  /// - Parameter root: the output root, as in ``Journal/Receipt/directory``.
  /// - Parameter own: the name in `cur` of the job that asks. It does not count.
  package func undelivered(_ output: String, in root: String?, besides own: FileName?) throws(SpoolError) -> FoundJob? {
    // In the order in which a job moves, and `cur` again for one that has left `partial` since.
    for directory in [Directory.new, .urgent, .cur, .partial, .cur, .hold, .failed] {
      let found = try firstJob(in: [directory], limit: Self.mostPublishers, besides: own) { job in
        job.text.journal.publication.undelivered?.place == [output.exact, root?.exact]
      }
      if let found { return found }
    }
    return nil
  }

  /// When a job that was found runs next, as far as its place tells; nil if that is up to a person.
  package func nextRun(of place: JobPlace) throws(SpoolError) -> Timestamp? {
    switch place.directory {
    case .new, .urgent, .cur: spool.now()
    case .partial: try spool.status(.partial, place.name).map { Timestamp(seconds: $0.modified) } ?? spool.now()
    case .hold, .done, .failed, .standing, .tmp, .workers, .files: nil
    }
  }

  /// Reading so many takes less than a second.
  private static let mostPublishers = 10_000
}
