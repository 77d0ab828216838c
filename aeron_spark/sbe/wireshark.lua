-- Walks messages by the table S, which stands before this. Spec: 10 §5-10, §15.
local proto = Proto(S.proto, S.title)
local MAX_EMPTY_ENTRIES = 10000 -- of a packet: entries without bytes, whose number nothing else bounds

local KINDS = {
    int8 = ProtoField.int8, int16 = ProtoField.int16, int32 = ProtoField.int32, int64 = ProtoField.int64,
    uint8 = ProtoField.uint8, uint16 = ProtoField.uint16, uint32 = ProtoField.uint32, uint64 = ProtoField.uint64,
    float = ProtoField.float, double = ProtoField.double, string = ProtoField.string, bytes = ProtoField.bytes,
    boolean = ProtoField.bool,
}
local UTF_16 = { UTF_16LE = ENC_UTF_16 + ENC_LITTLE_ENDIAN, UTF_16BE = ENC_UTF_16 + ENC_BIG_ENDIAN }
local fields = {}
for number, field in ipairs(S.fields) do
    fields[number] = KINDS[field.kind](field.abbr, field.name)
end
local message_name = ProtoField.string(S.proto .. ".message", "Message")
local all = { message_name }
for _, field in ipairs(fields) do all[#all + 1] = field end
proto.fields = all
local cut = ProtoExpert.new(S.proto .. ".cut", "SBE message cut off", expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new(S.proto .. ".unknown", "SBE message unknown", expert.group.UNDECODED, expert.severity.WARN)
local nul = ProtoExpert.new(S.proto .. ".nul", "SBE text with a NUL", expert.group.UNDECODED, expert.severity.NOTE)
proto.experts = { cut, unknown, nul }

-- A walk ends where bytes are missing: it raises this, with where and what.
local function fail(walk, what)
    error({ at = walk.at, text = what }, 0)
end

local function need(walk, count, what)
    if count < 0 or walk.at + count > walk.stop then fail(walk, what .. " is cut off") end
end

-- A number that counts, or a constant. Lengths beyond 2^53 are none that a packet has.
local function role(walk, of, base, missing)
    if not of then return missing end
    if of.constant then return of.constant end
    local size = tonumber(of.kind:match("%d+")) / 8
    local range = walk.buffer(base + of.at, size)
    local value
    if of.kind:sub(1, 1) == "u" then
        value = S.big and range:uint64() or range:le_uint64()
    else
        value = S.big and range:int64() or range:le_int64()
    end
    return value:tonumber()
end

local function number_of(kind, range)
    if kind == "float" or kind == "double" then return S.big and range:float() or range:le_float() end
    if kind:sub(1, 1) == "u" then return S.big and range:uint64() or range:le_uint64() end
    return S.big and range:int64() or range:le_int64()
end

local function is_null(of, range)
    if of.nan then
        local value = number_of(of.nan, range)
        return value ~= value
    end
    return of.null ~= nil and range:bytes():tohex() == of.null
end

local function add(tree, number, range)
    return S.big and tree:add(fields[number], range) or tree:add_le(fields[number], range)
end

-- Text up to its first NUL, as Wireshark has it; bytes where that has no such charset.
local function add_text(tree, of, range)
    if not of.charset then return tree:add(fields[of.field], range) end
    return tree:add_packet_field(fields[of.field], range, UTF_16[of.charset] or _G["ENC_" .. of.charset])
end

local function has_nul(of, range)
    if not of.charset or range:len() == 0 then return false end
    local text, nothing, at = range:raw(), UTF_16[of.charset] and "\0\0" or "\0", 0
    repeat
        at = text:find(nothing, at + 1, true)
    until not at or #nothing == 1 or at % 2 == 1
    return at ~= nil
end

local function note(tree, range, name, what)
    return tree:add(proto, range, name .. ": " .. what)
end

local function add_set(tree, of, range)
    local item = add(tree, of.field, range)
    local set = {}
    for _, choice in ipairs(of.bits) do
        local index = math.floor(choice.bit / 8)
        local byte = range(S.big and of.size - 1 - index or index, 1)
        local is_set = math.floor(byte:uint() / 2 ^ (choice.bit % 8)) % 2 == 1
        item:add(fields[choice.field], byte, is_set)
        if is_set then set[#set + 1] = choice.name end
    end
    item:append_text(" (" .. table.concat(set, ", ") .. ")")
end

local add_members

local function add_value(tree, buffer, of, base)
    if of.constant then
        note(tree, buffer(base, 0), of.name, of.constant):set_generated()
        return
    end
    if of.size == 0 and not of.members then return end
    local range = buffer(base + of.at, of.size)
    if of.members then
        local first = of.null_at and range(of.null_at, of.nan == "float" and 4 or of.nan and 8 or #of.null / 2)
        if first and is_null(of, first) then
            note(tree, range, of.name, "null")
        else
            add_members(note(tree, range, of.name, ""), buffer, of.members, base + of.at)
        end
    elseif of.bits then
        add_set(tree, of, range)
    elseif of.kind == "string" then
        if of.null and range(0, 1):bytes():tohex() == of.null then
            note(tree, range, of.name, "null")
        else
            add_text(tree, of, range)
        end
    elseif of.names then
        if is_null(of, range) then
            note(tree, range, of.name, "null")
            return
        end
        local item, raw = add(tree, of.field, range), range:bytes():tohex()
        for _, one in ipairs(of.names) do
            if one.raw == raw then
                item:append_text(" (" .. one.name .. ")")
                return
            end
        end
    else
        for at = 0, of.size - 1, of.each do
            local one = range(at, of.each)
            if is_null(of, one) then note(tree, one, of.name, "null") else add(tree, of.field, one) end
        end
    end
end

add_members = function(tree, buffer, members, base)
    for _, one in ipairs(members) do add_value(tree, buffer, one, base) end
end

local walk_block

local function walk_group(walk, tree, group)
    need(walk, group.size, group.name)
    local base = walk.at
    local length, count = role(walk, group.block_length, base), role(walk, group.count, base)
    if count < 0 then fail(walk, group.name .. " has " .. count .. " entries") end
    walk.at = base + group.size
    local item = note(tree, walk.buffer(base, group.size), group.name, count .. (count == 1 and " entry" or " entries"))
    for number = 1, count do
        local start = walk.at
        need(walk, length, group.name)
        walk_block(walk, item:add(proto, walk.buffer(start, length), group.name .. " " .. number), group.block, length)
        if walk.at == start then
            walk.empty = walk.empty + 1
            if walk.empty > MAX_EMPTY_ENTRIES then fail(walk, group.name .. " has too many entries without bytes") end
        end
    end
end

local function walk_data(walk, tree, data)
    need(walk, data.head, data.name)
    local length = role(walk, data.length, walk.at)
    walk.at = walk.at + data.at
    need(walk, length, data.name)
    local range = walk.buffer(walk.at, length)
    local item = add_text(tree, data, range)
    if has_nul(data, range) then
        item:add_proto_expert_info(nul, "text is shown up to its NUL; its bytes are " .. range:bytes():tohex())
    end
    walk.at = walk.at + length
end

-- A field that the version has not, or that an older writer's shorter block has not, is not there.
walk_block = function(walk, tree, number, length)
    local block, base = S.blocks[number], walk.at
    for _, one in ipairs(block.members) do
        if one.since <= walk.version then
            if one.constant or one.at + one.size <= length then
                add_value(tree, walk.buffer, one, base)
            elseif one.since == 0 then
                fail(walk, one.name .. " is not in its block")
            end
        end
    end
    walk.at = base + length
    for _, group in ipairs(block.groups) do
        if group.since <= walk.version then walk_group(walk, tree, group) end
    end
    for _, data in ipairs(block.data) do
        if data.since <= walk.version then walk_data(walk, tree, data) end
    end
end

local function walk_message(walk, tree)
    local base, header = walk.at, S.header
    need(walk, header.size, "the message header")
    local template = role(walk, header.template_id, base)
    local number = S.messages[template]
    walk.version = role(walk, header.version, base, S.version)
    add_members(note(tree, walk.buffer(base, header.size), "header", ""), walk.buffer, header.members, base)
    if role(walk, header.schema_id, base, S.schema_id) ~= S.schema_id or not number then
        tree:add_proto_expert_info(unknown, "template " .. template .. " is not of this schema")
        return nil
    end
    if not header.block_length and walk.version ~= S.version then
        fail(walk, "version " .. walk.version .. " without a block length; the schema is " .. S.version)
    end
    local block = S.blocks[number]
    tree:add(message_name, walk.buffer(base, header.size), block.name):set_generated()
    local length = role(walk, header.block_length, base, block.length)
    walk.at = base + header.size
    need(walk, length, block.name)
    walk_block(walk, tree, number, length)
    return block.name
end

-- One message in [at, stop): its name, and where it ends; nothing where it can't be read.
local function show(buffer, packet, at, stop, tree)
    local item = tree:add(proto, buffer(at, stop - at))
    -- An Aeron stream's packet comes here frame by frame.
    local walk = { buffer = buffer, at = at, stop = stop, version = 0, empty = tonumber(packet.private[S.proto]) or 0 }
    local good, told = pcall(walk_message, walk, item)
    packet.private[S.proto] = tostring(walk.empty)
    if not good then
        local text = type(told) == "table" and told.text or tostring(told)
        item:add_proto_expert_info(cut, text)
        return nil, stop
    end
    item:set_len((told and walk.at or stop) - at)
    return told, told and walk.at or stop
end

local function size_at(range, big)
    return big and range:uint() or range:le_uint()
end

local function has_mark(buffer, at)
    local frame = S.framing
    if #frame.marks == 0 then return true end
    local found = buffer(at + frame.mark_at, 2):bytes():tohex()
    for _, mark in ipairs(frame.marks) do
        if mark == found then return true end
    end
    return false
end

-- Begin and end of each message of a payload, as far as they are right; then whether something is wrong.
local function messages(buffer)
    local frame, stop, found = S.framing, buffer:len(), {}
    if frame.size == 0 then return { { 0, stop } }, false end
    local quiet = #frame.quiet / 2
    if quiet > 0 and stop >= frame.quiet_bytes and stop <= frame.header and buffer(0, quiet):bytes():tohex() == frame.quiet then
        return found, false
    end
    if stop < frame.header or (frame.mark_of_packet and (stop < frame.mark_at + 2 or not has_mark(buffer, 0))) then
        return found, true
    end
    local left = frame.count > 0 and size_at(buffer(frame.count_at, frame.count), frame.big) or -1
    local at, least = frame.header, math.max(frame.skip + S.header.size, frame.size_at + frame.size)
    while left ~= 0 and (left > 0 or at < stop) do
        if at + least > stop then return found, true end
        local size = size_at(buffer(at + frame.size_at, frame.size), frame.big) + frame.size_adds
        if size < least or at + size > stop or not (frame.mark_of_packet or has_mark(buffer, at)) then return found, true end
        found[#found + 1] = { at + frame.skip, at + size }
        at, left = at + size, left - 1
    end
    return found, false
end

function proto.dissector(buffer, packet, root)
    if buffer:len() == 0 then return 0 end
    local names, places, is_wrong = {}, messages(buffer)
    packet.cols.protocol = "SBE"
    for _, place in ipairs(places) do
        local at, stop = place[1], place[2]
        repeat
            local name, ends = show(buffer, packet, at, stop, root)
            names[#names + 1] = name
            at = ends
        until not S.framing.walks or not name or at >= stop
    end
    if is_wrong then
        root:add(proto, buffer()):add_proto_expert_info(cut, "the packet does not have the framing that the dissector was made for")
    end
    packet.cols.info = table.concat(names, ", ")
    return buffer:len()
end

-- Whether a payload begins with a message of the schema: its ids are known, and its block is there.
local function is_ours(buffer, packet, root)
    local good, found = pcall(function()
        local first = messages(buffer)[1]
        local walk = { buffer = buffer, at = first[1], stop = first[2] }
        local number = S.messages[role(walk, S.header.template_id, walk.at)]
        local length = role(walk, S.header.block_length, walk.at, 0)
        return S.header.schema_id ~= nil and number ~= nil
            and role(walk, S.header.schema_id, walk.at) == S.schema_id
            and walk.at + S.header.size + length <= walk.stop
    end)
    if not (good and found) then return false end
    proto.dissector(buffer, packet, root)
    return true
end

proto:register_heuristic("udp", is_ours)
-- Wireshark's dissector of Aeron offers whole messages to this list (its preference use_heuristic_subdissectors).
pcall(function() proto:register_heuristic("aeron_msg_payload", is_ours) end)
DissectorTable.get("udp.port"):add_for_decode_as(proto)
